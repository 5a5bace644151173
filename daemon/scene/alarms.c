#include "daemon/scene/scene.h"

#include <math.h>
#include <string.h>

static const int64_t SECOND = 1000000000;
static const int64_t STEP_MAX = SECOND;      // most that one picture counts for in an average
static const int64_t USUAL = 600 * SECOND;   // period of the averages
static const int64_t LEARNT = 30 * SECOND;   // after which they are valid
static const int64_t SETTLED = 600 * SECOND; // after which another view is the usual one
static const int64_t FROZEN = 15 * SECOND;
static const int64_t LIVELY = 2 * SECOND; // pictures that differ within this are not frozen
enum { FROZEN_PICTURES = 10 };

static const struct {
    const char *name;
    int64_t raise, clear; // how long the sign must last before
} kinds[ALARMS] = {
    [ALARM_DARK] = {"dark", 5 * SECOND, 5 * SECOND},
    [ALARM_GLARE] = {"glare", 5 * SECOND, 5 * SECOND},
    [ALARM_FROZEN] = {"frozen", 0, 3 * SECOND}, // its sign is a duration already
    [ALARM_BLURRED] = {"blurred", 10 * SECOND, 10 * SECOND},
    [ALARM_MOVED] = {"moved", 10 * SECOND, 10 * SECOND},
};

// The sign of an alarm in one picture; SIGN_NONE: between good and bad.
enum sign { SIGN_GOOD = -1, SIGN_NONE, SIGN_BAD };

const char *alarm_name(enum alarm alarm)
{
    return kinds[alarm].name;
}

static enum sign sign_of(bool bad, bool good)
{
    return bad ? SIGN_BAD : good ? SIGN_GOOD : SIGN_NONE;
}

static void follow(struct alarms *alarms, enum alarm alarm, enum sign sign, int64_t pts_ns)
{
    struct alarm_state *state = &alarms->state[alarm];
    const int64_t lasts = state->raised ? kinds[alarm].clear : kinds[alarm].raise;
    if (sign != (state->raised ? SIGN_GOOD : SIGN_BAD)) {
        state->opposed = false;
        return;
    }
    if (!state->opposed)
        state->since_ns = pts_ns;
    state->opposed = true;
    if (pts_ns - state->since_ns < lasts)
        return;
    *state = (struct alarm_state){.raised = !state->raised, .since_ns = pts_ns};
}

// --- light

static enum sign sign_of_dark(const struct luma_statistics *luma,
                              const struct statistics_params *levels)
{
    const double pixels = luma->pixels, range = levels->white - levels->black;
    const double level = (double)luma->sum / pixels;
    const double variance = (double)luma->squares / pixels - level * level;
    // Shares of the range from black to white.
    const double mean = (level - levels->black) / range;
    const double deviation = sqrt(variance > 0 ? variance : 0) / range;
    return sign_of(mean < 0.06 && deviation<0.06, mean> 0.09 || deviation > 0.09);
}

static enum sign sign_of_glare(const struct luma_statistics *luma)
{
    const double white = (double)luma->white / luma->pixels;
    return sign_of(white > 0.25, white < 0.15);
}

// --- frozen

static enum sign sign_of_frozen(struct alarms *alarms, const struct scene_record *record)
{
    const struct picture_identity now = {record->luma.sum, record->luma.squares,
                                         record->luma.laplacian, record->info.scene.fingerprint};
    if (memcmp(&now, &alarms->last, sizeof now) != 0) {
        alarms->last = now;
        alarms->changed_ns = record->info.pts_ns;
        alarms->same = 0;
    }
    alarms->same++;
    const int64_t lasted = record->info.pts_ns - alarms->changed_ns;
    return sign_of(lasted >= FROZEN && alarms->same >= FROZEN_PICTURES, lasted < LIVELY);
}

// --- what is usual

// Returns the weight of a picture that comes `step` after the one before, in an average over
// *learnt so far. With the sign of the alarm, or once the average is known with the alarm itself, a
// picture is not usual: 0.
static double weight_of(enum sign sign, bool alarmed, int64_t *learnt, int64_t step)
{
    const int64_t before = *learnt < USUAL ? *learnt : USUAL;
    if (sign == SIGN_BAD || alarmed)
        return 0;
    *learnt += step;
    return before == 0 ? 1 : (double)step / (double)(before + step);
}

static enum sign sign_of_blur(struct alarms *alarms, const struct scene_record *record,
                              enum sign dark, int64_t step)
{
    const double sharpness = (double)record->luma.laplacian / record->luma.pixels;
    const double part = sharpness / alarms->usual_sharpness;
    const bool known = alarms->sharpness_ns >= LEARNT && alarms->usual_sharpness >= 1;
    if (dark == SIGN_BAD)
        return SIGN_NONE;
    const enum sign sign = known ? sign_of(part<0.4, part> 0.6) : SIGN_NONE;
    const bool alarmed = known && alarms->state[ALARM_BLURRED].raised;
    const double weight = weight_of(sign, alarmed, &alarms->sharpness_ns, step);
    alarms->usual_sharpness += weight * (sharpness - alarms->usual_sharpness);
    return sign;
}

// Returns Pearson's correlation with the usual grid; -2: one of the two has hardly any contrast.
static double correlation(const struct alarms *alarms, const uint8_t *grid)
{
    const double n = alarms->cells, least = 4 * n; // a variance of 2 levels squared
    double a = 0, b = 0, aa = 0, bb = 0, ab = 0;
    for (int i = 0; i < alarms->cells; i++) {
        const double x = grid[i], y = (double)alarms->usual_grid[i];
        a += x;
        b += y;
        aa += x * x;
        bb += y * y;
        ab += x * y;
    }
    aa -= a * a / n;
    bb -= b * b / n;
    return aa < least || bb < least ? -2 : (ab - a * b / n) / sqrt(aa * bb);
}

static void learn_grid(struct alarms *alarms, const uint8_t *grid, double weight)
{
    for (int i = 0; i < alarms->cells; i++)
        alarms->usual_grid[i] +=
            (float)(weight * ((double)grid[i] - (double)alarms->usual_grid[i]));
}

static enum sign sign_of_move(struct alarms *alarms, const struct scene_record *record,
                              int64_t step)
{
    const struct alarm_state *state = &alarms->state[ALARM_MOVED];
    const double alike = correlation(alarms, record->grid);
    const bool known = alarms->grid_ns >= LEARNT;
    const enum sign sign = known && alike >= -1 ? sign_of(alike<0.4, alike> 0.7) : SIGN_NONE;
    const int64_t raised_ns =
        state->raised && !state->opposed ? record->info.pts_ns - state->since_ns : 0;
    const double weight = weight_of(sign, known && state->raised, &alarms->grid_ns, step);
    learn_grid(alarms, record->grid, raised_ns > SETTLED ? 1 : weight);
    return sign;
}

// ---

// Durations restart with the timestamps.
static void enter_epoch(struct alarms *alarms, const struct scene_record *record)
{
    for (int i = 0; i < ALARMS; i++) {
        alarms->state[i].opposed = false;
        alarms->state[i].since_ns = record->info.pts_ns;
    }
    alarms->begun = true;
    alarms->epoch = record->info.epoch;
    alarms->pts_ns = record->info.pts_ns;
    alarms->changed_ns = record->info.pts_ns;
    alarms->same = 0;
}

void alarms_restart(struct alarms *alarms)
{
    alarms->begun = false;
    alarms->sharpness_ns = 0;
    alarms->grid_ns = 0;
}

unsigned alarms_step(struct alarms *alarms, const struct scene_record *record,
                     const struct statistics_params *levels)
{
    unsigned raised = 0;
    if (!alarms->begun || alarms->epoch != record->info.epoch)
        enter_epoch(alarms, record);
    alarms->cells = record->columns * record->rows;
    int64_t step = record->info.pts_ns - alarms->pts_ns;
    step = step < STEP_MAX ? step : STEP_MAX;
    const enum sign dark = sign_of_dark(&record->luma, levels);
    const enum sign sign[ALARMS] = {
        [ALARM_DARK] = dark,
        [ALARM_GLARE] = sign_of_glare(&record->luma),
        [ALARM_FROZEN] = sign_of_frozen(alarms, record),
        [ALARM_BLURRED] = sign_of_blur(alarms, record, dark, step),
        [ALARM_MOVED] = sign_of_move(alarms, record, step),
    };
    alarms->pts_ns = record->info.pts_ns;
    for (int i = 0; i < ALARMS; i++) {
        follow(alarms, i, sign[i], record->info.pts_ns);
        raised |= (unsigned)alarms->state[i].raised << i;
    }
    return raised;
}
