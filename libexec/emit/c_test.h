/* What every test.c does with its tables: draws inputs, calls both, compares by relative L2. */

static void *make(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (memory == NULL)
        exit(3);
    memset(memory, 0xff, bytes); /* NaN: what is never written shows */
    return memory;
}

static double load(const struct tensor *tensor, const void *memory, size_t i)
{
    if (strcmp(tensor->type, "float64") == 0)
        return ((const double *)memory)[i];
    if (strcmp(tensor->type, "int32") == 0)
        return ((const int32_t *)memory)[i];
    return (double)((const float *)memory)[i];
}

static void draw(const struct tensor *tensor, void *memory, size_t count)
{
    static uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        double number =
            tensor->low + (tensor->high - tensor->low) * ((double)(state >> 11) * 0x1p-53);
        if (strcmp(tensor->type, "float64") == 0)
            ((double *)memory)[i] = number;
        else if (strcmp(tensor->type, "int32") == 0)
            ((int32_t *)memory)[i] = (int32_t)lround(number);
        else
            ((float *)memory)[i] = (float)number;
    }
}

static double error(const struct tensor *tensor, const void *got, const void *expected,
                    size_t count)
{
    double difference = 0.0, size = 0.0;
    for (size_t i = 0; i < count; i++) {
        double e = load(tensor, expected, i), d = load(tensor, got, i) - e;
        if (isinf(e) && load(tensor, got, i) == e)
            continue;
        difference += d * d;
        size += e * e;
    }
    return sqrt(difference) / (size > 0.0 ? sqrt(size) : 1.0);
}

static int check(const struct shape *shape)
{
    void *ours[TENSORS], *theirs[TENSORS];
    int failed = 0;
    for (int t = 0; t < TENSORS; t++) {
        ours[t] = theirs[t] = make(shape->elements[t] * tensors[t].bytes);
        if (t < INPUTS)
            draw(&tensors[t], ours[t], shape->elements[t]);
        else
            theirs[t] = make(shape->elements[t] * tensors[t].bytes);
    }
    call_kernel(ours, shape->dims);
    call_reference_kernel(theirs, shape->dims);
    for (int t = INPUTS; t < INPUTS + OUTPUTS; t++) {
        double bound = strcmp(tensors[t].type, "float64") == 0 ? 1e-13
                       : strcmp(tensors[t].type, "int32") == 0 ? 0.0
                                                               : 2e-5;
        double is = error(&tensors[t], ours[t], theirs[t], shape->elements[t]);
        printf("%s %s:", is <= bound ? "ok    " : "FAILED", tensors[t].name);
        for (int d = 0; d < DIMS; d++)
            printf(" %lld", (long long)shape->dims[d]);
        printf(": error %.1e, at most %.1e\n", is, bound);
        failed |= !(is <= bound);
    }
    for (int t = 0; t < TENSORS; t++) {
        if (theirs[t] != ours[t])
            free(theirs[t]);
        free(ours[t]);
    }
    return failed;
}

int main(void)
{
    int failed = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        failed |= check(&shapes[i]);
    return failed;
}
