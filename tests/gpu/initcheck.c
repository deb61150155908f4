/* What a sanitized runner does with gemv's split.cu, alone and often: initcheck WAY SECONDS CUBIN
 * WAY: together (every call in a stream of its own, launches queued), in-turn (each waited for).
 * Prints how many rounds of nine shapes it made; what the tool says of them is the question. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALLS = 9, PARTS = 4, BLOCK = 256, MOST = 64 << 20 };

#define OK(call)                                                                                   \
    do {                                                                                           \
        CUresult result = (call);                                                                  \
        if (result != 0)                                                                           \
            exit((printf("%s: %d\n", #call, (int)result), 9));                                     \
    } while (0)

static struct call {
    long long m, n;
    CUstream stream;
    CUdeviceptr a, x, parts, y;
    CUmodule module;
    CUfunction first, second;
} calls[CALLS];

static const long long shapes[CALLS][2] = {{1, 1},     {1, 131},   {37, 1},    {7, 61},  {127, 257},
                                           {33, 4099}, {300, 200}, {100, 500}, {599, 77}};

static char image[1 << 20];
static float *numbers;

static void make_ready(struct call *c)
{
    if (c->stream == NULL)
        OK(cuStreamCreate(&c->stream, 0));
    OK(cuMemAlloc(&c->a, (size_t)(4 * c->m * c->n)));
    OK(cuMemAlloc(&c->x, (size_t)(4 * c->n)));
    OK(cuMemAlloc(&c->parts, (size_t)(4 * c->m * PARTS)));
    OK(cuMemAlloc(&c->y, (size_t)(4 * c->m)));
    OK(cuMemcpyHtoDAsync(c->a, numbers, (size_t)(4 * c->m * c->n), c->stream));
    OK(cuMemcpyHtoDAsync(c->x, numbers, (size_t)(4 * c->n), c->stream));
    OK(cuStreamSynchronize(c->stream));
    OK(cuModuleLoadData(&c->module, image));
    OK(cuModuleGetFunction(&c->first, c->module, "gemv_parts"));
    OK(cuModuleGetFunction(&c->second, c->module, "join"));
}

static void launch(struct call *c, int in_turn)
{
    void *first[] = {&c->a, &c->x, &c->parts, &c->n}, *second[] = {&c->parts, &c->y, &c->m};
    OK(cuLaunchKernel(c->first, (unsigned)(c->m * PARTS), 1, 1, BLOCK, 1, 1, 0, c->stream, first,
                      NULL));
    if (in_turn)
        OK(cuStreamSynchronize(c->stream));
    OK(cuLaunchKernel(c->second, (unsigned)((c->m + 7) / 8), 1, 1, 256, 1, 1, 0, c->stream, second,
                      NULL));
    if (in_turn)
        OK(cuStreamSynchronize(c->stream));
}

static void end(struct call *c)
{
    OK(cuStreamSynchronize(c->stream));
    OK(cuModuleUnload(c->module));
    OK(cuMemFree(c->a));
    OK(cuMemFree(c->x));
    OK(cuMemFree(c->parts));
    OK(cuMemFree(c->y));
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    long rounds = 0;
    FILE *file = argc == 4 ? fopen(argv[3], "rb") : NULL;
    if (file == NULL || fread(image, 1, sizeof image - 1, file) == 0)
        return 2;
    numbers = calloc(MOST, 1);
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    for (time_t until = time(NULL) + atoi(argv[2]); time(NULL) < until; rounds++) {
        for (int i = 0; i < CALLS; i++) {
            calls[i].m = shapes[i][0], calls[i].n = shapes[i][1];
            make_ready(&calls[i]);
        }
        for (int i = 0; i < CALLS; i++)
            launch(&calls[i], strcmp(argv[1], "in-turn") == 0);
        for (int i = 0; i < CALLS; i++)
            end(&calls[i]);
    }
    printf("%ld rounds\n", rounds);
    return 0;
}
