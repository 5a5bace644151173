#include "kernels/cpu/analyser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/versions.h"

struct analyser {
    const struct analysis *analysis;
    const struct version *version;
    uint32_t *cells;
    uint8_t grid[STATISTICS_GRID_MAX * STATISTICS_GRID_MAX];
    struct motion_state *state;
    struct motion_changes *changes;
    void *workspace;
    struct motion_boxes boxes;
    uint8_t luma[1][FINGERPRINT_LUMA];
};

static void *allocate(size_t bytes)
{
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

int cpu_analyser_open(struct backend *backend, struct analyser **ret,
                      const struct analysis *analysis, const struct image *src)
{
    (void)backend, (void)src;
    const struct statistics *statistics = &analysis->statistics;
    const struct motion *motion = &analysis->motion;
    const size_t cells = (size_t)statistics->columns * (size_t)statistics->rows;
    struct analyser *analyser = calloc(1, sizeof *analyser);
    if (!analyser)
        return -ENOMEM;
    analyser->analysis = analysis;
    analyser->version = version_find(getenv("FRAMED_CPU"));
    analyser->cells = allocate(cells * sizeof *analyser->cells);
    analyser->state = allocate(motion_state_bytes(motion));
    analyser->changes = allocate(motion_changes_bytes(motion));
    analyser->workspace = allocate(motion_workspace_bytes(motion));
    if (!analyser->version || !analyser->cells || !analyser->state || !analyser->changes ||
        !analyser->workspace) {
        cpu_analyser_close(analyser);
        return -ENOMEM;
    }
    memset(analyser->state, 0, motion_state_bytes(motion));
    *ret = analyser;
    return 0;
}

void cpu_analyser_close(struct analyser *analyser)
{
    if (!analyser)
        return;
    free(analyser->workspace);
    free(analyser->changes);
    free(analyser->state);
    free(analyser->cells);
    free(analyser);
}

int cpu_analyse(struct analyser *analyser, const struct image *src, struct analysis_result *ret)
{
    const struct analysis *analysis = analyser->analysis;
    const struct version *version = analyser->version;
    version->statistics(&analysis->statistics, src, &ret->luma, analyser->cells);
    version->motion(&analysis->motion, analyser->state, analyser->cells, analyser->changes,
                    analyser->workspace);
    motion_boxes(&analysis->motion, analyser->changes, &analyser->boxes, analyser->workspace);
    fingerprint_luma(&analysis->fingerprint, analyser->cells, analyser->luma[0]);
    fingerprint_reference(analyser->luma, &ret->fingerprint, 1);
    statistics_grid(&analysis->statistics, analyser->cells, analyser->grid);
    ret->grid = analyser->grid;
    ret->motion = &analyser->boxes;
    return 0;
}
