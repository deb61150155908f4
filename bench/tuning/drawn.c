#include "drawn.h"

#include "base/mem.h"
#include "tuning/model.h"

#include "../../tests/unit/normal.h"

_Static_assert((int)DRAWN_MAX <= (int)MODEL_ROWS, "a drawn point is a row of the model");
static const double HAND_LEAST = 0.01, HAND_MOST = 8, DEVIATION = 0.2;

static double covariance(const struct model *model, const double *hand, size_t a, size_t b)
{
    double product = 1, variance = 1;
    for (size_t j = 0; j < model->parameters; j++) {
        product *= 1 + hand[j] * model->alike[j][model->at[a][j]][model->at[b][j]];
        variance *= 1 + hand[j];
    }
    return (product - 1) / (variance - 1);
}

static void read_points(const struct tune_parameter *lists, const int64_t *points,
                        struct model *model)
{
    size_t width = model->parameters;
    for (size_t j = 0; j < width; j++) {
        model_values(model, j, lists[j].values, lists[j].count);
        for (size_t i = 0; i < model->count; i++)
            while (lists[j].values[model->at[i][j]] != points[i * width + j])
                model->at[i][j]++;
    }
}

void drawn_times(size_t parameters, const struct tune_parameter *lists, size_t count,
                 const int64_t *points, uint64_t seed, double *time_ns)
{
    double hand[TUNE_MAX] = {0}, z[DRAWN_MAX], *l = mem_array(count * count, sizeof *l);
    struct model *model = MEM_NEW(struct model);
    struct random random;
    model->parameters = parameters;
    model->count = count;
    random_init(&random, seed);
    read_points(lists, points, model);
    for (size_t j = 0; j < parameters; j++)
        hand[j] =
            lists[j].count > 1 ? HAND_LEAST * pow(HAND_MOST / HAND_LEAST, random_unit(&random)) : 0;
    for (size_t i = 0; i < count; i++) { /* Cholesky's factor, row by row */
        double y = 0;
        z[i] = random_normal(&random);
        for (size_t k = 0; k <= i; k++) {
            double sum = covariance(model, hand, i, k) + (i == k ? 1e-6 : 0);
            for (size_t m = 0; m < k; m++)
                sum -= l[i * count + m] * l[k * count + m];
            l[i * count + k] = i == k ? sqrt(fmax(sum, 1e-12)) : sum / l[k * count + k];
            y += l[i * count + k] * z[k];
        }
        time_ns[i] = 1e6 * exp(DEVIATION * y);
    }
    mem_free(model);
    mem_free(l);
}
