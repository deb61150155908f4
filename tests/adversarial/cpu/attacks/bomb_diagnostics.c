/* a hundred thousand errors */
#define E1 x@y;
#define E2 E1 E1 E1 E1 E1 E1 E1 E1 E1 E1
#define E3 E2 E2 E2 E2 E2 E2 E2 E2 E2 E2
#define E4 E3 E3 E3 E3 E3 E3 E3 E3 E3 E3
#define E5 E4 E4 E4 E4 E4 E4 E4 E4 E4 E4
#define E6 E5 E5 E5 E5 E5 E5 E5 E5 E5 E5
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    E6
}
