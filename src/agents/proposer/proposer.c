#include "agents/proposer/proposer.h"

#include "agents/proposer/arm.h"
#include "agents/proposer/surrogate.h"
#include "base/mem.h"
#include "base/random.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SCORED_MAX = 2048, /* points whose expected improvement is computed for one proposal */
    ELITE = 4,         /* best points whose neighbours are always scored */
    EVEN_MAX = 64      /* looks of a start; beyond these any point is drawn */
};

/* Doubt about a whole start before its first look, in the logarithm of time. */
static const double start_doubt = 0.3;

struct suggestion {
    size_t arm;
    struct tune_point point;
};

struct proposer {
    struct random random;
    struct suggestion *suggestions;
    size_t suggestion_count;
    double floor_ns;
    unsigned draws_every, proposals;
    bool draws_evenly;
    struct surrogate *surrogate;
    size_t refined; /* kernels when the hyperparameters were last refined */
    size_t arm_count;
    struct arm arms[PROPOSER_STARTS_MAX];
};

struct proposer *proposer_new(uint64_t seed)
{
    struct proposer *proposer = MEM_NEW(struct proposer);
    random_init(&proposer->random, seed);
    proposer->surrogate = surrogate_new();
    return proposer;
}

void proposer_free(struct proposer *proposer)
{
    if (proposer == NULL)
        return;
    for (size_t i = 0; i < proposer->arm_count; i++) {
        mem_free(proposer->arms[i].points);
        mem_free(proposer->arms[i].looks);
    }
    surrogate_free(proposer->surrogate);
    mem_free(proposer->suggestions);
    mem_free(proposer);
}

int proposer_add(struct proposer *proposer, const struct proposer_space *space)
{
    if (proposer->arm_count == PROPOSER_STARTS_MAX)
        return -1;
    struct arm *arm = &proposer->arms[proposer->arm_count];
    *arm = (struct arm){.space = space, .number = (uint8_t)proposer->arm_count};
    arm_list(arm, &proposer->random);
    if (arm->point_count == 0) {
        mem_free(arm->points);
        return -1;
    }
    if (surrogate_add(proposer->surrogate, space->parameters, space->parameter_count) < 0) {
        mem_free(arm->points);
        return -1;
    }
    return (int)proposer->arm_count++;
}

void proposer_set_floor(struct proposer *proposer, double floor_ns)
{
    proposer->floor_ns = floor_ns;
}

void proposer_tell(struct proposer *proposer, size_t start, const struct names *tune,
                   double time_ns)
{
    struct arm *arm = &proposer->arms[start];
    struct tune_point point;
    if (!arm_point(arm, tune, &point))
        return;
    struct look *look = arm_find(arm, &point);
    if (look == NULL)
        look = arm_add(arm, &point);
    look->told = true;
    look->kernel = time_ns > 0;
    look->log_time = look->kernel ? log(time_ns) : 0;
}

void proposer_withdraw(struct proposer *proposer, size_t start, const struct names *tune)
{
    struct arm *arm = &proposer->arms[start];
    struct tune_point point;
    if (!arm_point(arm, tune, &point))
        return;
    struct look *look = arm_find(arm, &point);
    if (look != NULL && !look->told)
        *look = arm->looks[--arm->look_count];
}

void proposer_suggest(struct proposer *proposer, size_t start, const struct names *tune)
{
    struct suggestion suggestion = {.arm = start};
    struct arm *arm = &proposer->arms[start];
    if (!arm_point(arm, tune, &suggestion.point) || !arm_valid(arm->space, &suggestion.point))
        return;
    proposer->suggestions = mem_resize(proposer->suggestions, (proposer->suggestion_count + 1) *
                                                                  sizeof *proposer->suggestions);
    proposer->suggestions[proposer->suggestion_count++] = suggestion;
}

/* The next that was not looked at meanwhile; where `first`, of a start that nobody has looked at.
 */
static bool take_suggestion(struct proposer *proposer, bool first, struct suggestion *taken)
{
    for (size_t i = 0; i < proposer->suggestion_count; i++) {
        const struct suggestion *found = &proposer->suggestions[i];
        const struct arm *arm = &proposer->arms[found->arm];
        *taken = *found;
        if (!(first && arm->look_count > 0) && arm_find(arm, &found->point) == NULL)
            return true; /* it becomes a look, and is passed over from then on */
    }
    return false;
}

/* The author's own choice: first values, where any list says by its order that the first one is
 * meant; where all lists merely rise, the middle, which no author would put first by accident. */
static bool is_meant(const struct tune_parameter *parameters, size_t count)
{
    bool meant = false;
    for (size_t j = 0; j < count; j++)
        for (size_t i = 1; i < parameters[j].count; i++)
            meant |= parameters[j].values[i] < parameters[j].values[i - 1];
    return meant;
}

void proposer_choice(const struct tune_parameter *parameters, size_t count, struct names *tune)
{
    bool meant = is_meant(parameters, count);
    struct err ignored;
    *tune = (struct names){0};
    for (size_t j = 0; j < count; j++)
        (void)!names_set(tune, parameters[j].name,
                         parameters[j].values[meant ? 0 : parameters[j].count / 2], &ignored);
}

static void first_look(const struct proposer *proposer, const struct arm *arm,
                       struct tune_point *point)
{
    const struct proposer_space *space = arm->space;
    struct tune_point wanted = {.space = arm->number};
    bool meant = is_meant(space->parameters, space->parameter_count);
    for (size_t j = 0; j < space->parameter_count && !meant; j++)
        wanted.at[j] = (uint8_t)(space->parameters[j].count / 2);
    double nearest = INFINITY;
    for (size_t i = 0; i < arm->point_count; i++) {
        double distance = surrogate_distance(proposer->surrogate, &arm->points[i], &wanted);
        if (distance < nearest) {
            nearest = distance;
            *point = arm->points[i];
        }
    }
}

/* Share of the kernels among the looks around a point; optimistic where nothing is near. */
static double feasible(const struct proposer *proposer, const struct arm *arm,
                       const struct tune_point *point)
{
    double good = 1, all = 1;
    for (size_t i = 0; i < arm->look_count; i++) {
        const struct look *look = &arm->looks[i];
        if (!look->told)
            continue;
        double d = surrogate_distance(proposer->surrogate, point, &look->point) / 0.4;
        double weight = 2 * exp(-0.5 * d * d);
        all += weight;
        good += look->kernel ? weight : 0;
    }
    return good / all;
}

static int faster(const void *left, const void *right)
{
    const struct look *const *a = left, *const *b = right;
    return (*a)->log_time < (*b)->log_time ? -1 : (*a)->log_time > (*b)->log_time;
}

/* The looks that the model is conditioned on: all, or, where they are too many, the best half of
 * what fits and an even choice of the rest, so that it is not forgotten what is slow. */
static size_t choose_looks(const struct proposer *proposer, size_t room, const struct look **chosen)
{
    size_t kernels = 0, all = 0, count = 0;
    for (size_t i = 0; i < proposer->arm_count; i++)
        all += proposer->arms[i].look_count;
    const struct look **looks = mem_array(all > 0 ? all : 1, sizeof *looks);
    for (size_t i = 0; i < proposer->arm_count; i++)
        for (size_t j = 0; j < proposer->arms[i].look_count; j++)
            if (proposer->arms[i].looks[j].kernel)
                looks[kernels++] = &proposer->arms[i].looks[j];
    if (kernels > room) {
        qsort(looks, kernels, sizeof *looks, faster);
        for (; count < room / 2; count++)
            chosen[count] = looks[count];
        for (size_t rest = room - count, i = 0; i < rest; i++)
            chosen[count + i] = looks[count + i * (kernels - count) / rest];
        count = room;
    } else {
        memcpy(chosen, looks, kernels * sizeof *looks);
        count = kernels;
    }
    mem_free(looks);
    return count;
}

/* Conditions the model on what was told; looks in flight come in as what is expected of them. */
static void fit(struct proposer *proposer, double best)
{
    enum { FLYING_MAX = 16, ROOM = SURROGATE_POINTS_MAX - FLYING_MAX };
    const struct look *chosen[ROOM];
    struct tune_point points[SURROGATE_POINTS_MAX];
    double y[SURROGATE_POINTS_MAX], mean = 0;
    size_t count = choose_looks(proposer, ROOM, chosen), kernels = 0;
    for (size_t i = 0; i < count; i++) {
        points[i] = chosen[i]->point;
        y[i] = surrogate_bend(chosen[i]->log_time, best);
        mean += y[i] / (double)count;
    }
    for (size_t i = 0; i < proposer->arm_count; i++)
        for (size_t j = 0; j < proposer->arms[i].look_count; j++)
            kernels += proposer->arms[i].looks[j].kernel;
    bool refine = kernels >= 4 && kernels > proposer->refined &&
                  (kernels < 24 || proposer->refined * 9 / 8 < kernels);
    if (refine)
        proposer->refined = kernels;
    surrogate_fit(proposer->surrogate, points, y, count, mean, start_doubt, refine);
    size_t known = count;
    for (size_t i = 0; i < proposer->arm_count; i++) {
        for (size_t j = 0; j < proposer->arms[i].look_count; j++) {
            const struct look *look = &proposer->arms[i].looks[j];
            double deviation;
            if (look->told || count == SURROGATE_POINTS_MAX)
                continue;
            surrogate_predict(proposer->surrogate, &look->point, &y[count], &deviation);
            points[count++] = look->point;
        }
    }
    if (count > known)
        surrogate_fit(proposer->surrogate, points, y, count, mean, start_doubt, false);
}

struct scored {
    double score;
    size_t arm;
    struct tune_point point;
    double expected;
};

static void score(struct proposer *proposer, size_t number, const struct tune_point *point,
                  double floor, struct scored *best)
{
    struct arm *arm = &proposer->arms[number];
    if (arm_find(arm, point) != NULL)
        return;
    double mean, deviation;
    surrogate_predict(proposer->surrogate, point, &mean, &deviation);
    double gain =
        surrogate_improvement(0, mean, deviation + 1e-9, floor) * feasible(proposer, arm, point);
    /* Far below the doubt's reach every gain rounds to 0: the nearest to the best is taken then. */
    double value = gain > 1e-12 ? gain : 1e-12 / (1 + fabs(mean));
    if (value > best->score)
        *best = (struct scored){value, number, *point, mean};
}

/* Every valid point one parameter away from `point`. */
static void score_neighbours(struct proposer *proposer, size_t number,
                             const struct tune_point *point, double floor, struct scored *best)
{
    const struct proposer_space *space = proposer->arms[number].space;
    for (size_t j = 0; j < space->parameter_count; j++) {
        struct tune_point other = *point;
        for (size_t i = 0; i < space->parameters[j].count; i++) {
            other.at[j] = (uint8_t)i;
            if (i != point->at[j] && arm_valid(space, &other))
                score(proposer, number, &other, floor, best);
        }
    }
}

static void score_arm(struct proposer *proposer, size_t number, double floor, struct scored *best)
{
    struct arm *arm = &proposer->arms[number];
    if (arm->point_count <= SCORED_MAX) {
        for (size_t i = 0; i < arm->point_count; i++)
            score(proposer, number, &arm->points[i], floor, best);
        return;
    }
    for (size_t i = 0; i < SCORED_MAX; i++) {
        size_t pick = (size_t)random_below(&proposer->random, arm->point_count);
        score(proposer, number, &arm->points[pick], floor, best);
    }
    double above = -INFINITY;
    for (int rank = 0; rank < ELITE; rank++) {
        const struct look *next = NULL;
        for (size_t i = 0; i < arm->look_count; i++) {
            const struct look *look = &arm->looks[i];
            if (look->kernel && look->log_time > above &&
                (next == NULL || look->log_time < next->log_time))
                next = look;
        }
        if (next == NULL)
            break;
        above = next->log_time;
        score_neighbours(proposer, number, &next->point, floor, best);
    }
}

static bool propose(struct proposer *proposer, size_t number, const struct tune_point *point,
                    enum proposal_kind kind, double expected_ns, struct proposal *proposal)
{
    struct arm *arm = &proposer->arms[number];
    *proposal = (struct proposal){.start = number, .kind = kind, .expected_ns = expected_ns};
    arm_names(arm->space, point, &proposal->tune);
    const struct look *origin = arm_best(arm);
    if (origin != NULL) {
        proposal->has_origin = true;
        arm_names(arm->space, &origin->point, &proposal->origin);
        if (kind == PROPOSAL_MODEL && surrogate_steps(&origin->point, point) == 1)
            proposal->kind = PROPOSAL_NEIGHBOUR;
    }
    arm_add(arm, point);
    return true;
}

void proposer_draw(struct proposer *proposer, unsigned every, bool evenly)
{
    proposer->draws_every = every;
    proposer->draws_evenly = evenly;
}

size_t proposer_points(const struct proposer *proposer)
{
    size_t count = 0;
    for (size_t i = 0; i < proposer->arm_count; i++)
        count += proposer->arms[i].point_count;
    return count;
}

/* One of the least crowded points that are left, or any. Of a start that nobody has looked at all
 * are: the author's choice, beside whose time others soon show that they are far behind. */
static bool draw(struct proposer *proposer, struct proposal *proposal)
{
    size_t number = 0, ties = 0;
    struct tune_point point = {0};
    int least = INT_MAX;
    for (size_t i = 0; proposer->draws_evenly && i < proposer->arm_count; i++)
        if (proposer->arms[i].look_count == 0) {
            first_look(proposer, &proposer->arms[i], &point);
            return propose(proposer, i, &point, PROPOSAL_FIRST, 0, proposal);
        }
    for (size_t i = 0; i < proposer->arm_count; i++) {
        const struct arm *arm = &proposer->arms[i];
        bool evenly = proposer->draws_evenly && arm->look_count < EVEN_MAX;
        for (size_t k = 0; k < arm->point_count; k++) {
            if (arm_find(arm, &arm->points[k]) != NULL)
                continue;
            int now = evenly ? arm_crowd(arm, &arm->points[k]) : INT_MAX;
            ties = now < least ? 0 : ties;
            least = now < least ? now : least;
            if (now > least || random_below(&proposer->random, ++ties))
                continue; /* the n-th that is as good replaces the one chosen, 1 in n */
            number = i;
            point = arm->points[k];
        }
    }
    return ties > 0 && propose(proposer, number, &point, PROPOSAL_CHANCE, 0, proposal);
}

bool proposer_next(struct proposer *proposer, struct proposal *proposal)
{
    double best = INFINITY;
    struct tune_point point = {0};
    struct suggestion recalled;
    if (proposer->draws_every > 0 && ++proposer->proposals % proposer->draws_every == 0)
        return draw(proposer, proposal);
    if (take_suggestion(proposer, true, &recalled))
        return propose(proposer, recalled.arm, &recalled.point, PROPOSAL_RECALLED, 0, proposal);
    for (size_t i = 0; i < proposer->arm_count; i++) {
        struct arm *arm = &proposer->arms[i];
        if (arm->look_count == 0) {
            first_look(proposer, arm, &point);
            return propose(proposer, i, &point, PROPOSAL_FIRST, 0, proposal);
        }
        const struct look *look = arm_best(arm);
        if (look != NULL && look->log_time < best)
            best = look->log_time;
    }
    if (take_suggestion(proposer, false, &recalled))
        return propose(proposer, recalled.arm, &recalled.point, PROPOSAL_RECALLED, 0, proposal);
    bool known = isfinite(best);
    double floor = known && proposer->floor_ns > 0 ? log(proposer->floor_ns) - best : -INFINITY;
    struct scored found = {.score = 0};
    fit(proposer, known ? best : 0);
    for (size_t i = 0; i < proposer->arm_count; i++)
        score_arm(proposer, i, floor, &found);
    if (found.score <= 0)
        return false;
    size_t told = 0;
    for (size_t j = 0; j < proposer->arms[found.arm].look_count; j++)
        told += proposer->arms[found.arm].looks[j].kernel;
    return propose(proposer, found.arm, &found.point, told < 3 ? PROPOSAL_SPREAD : PROPOSAL_MODEL,
                   known ? exp(found.expected + best) : 0, proposal);
}
