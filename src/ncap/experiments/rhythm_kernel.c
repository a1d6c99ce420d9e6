/* The rhythm generator for the search of its numbers: the circuit of ncap/circuits/circuit.py without Python.
 *
 * Individuals differ in their inputs, their start and their noise, not in their weights. LANES of them are stepped side
 * by side, so that the compiler can use the processor's vectors. All arithmetic is in double precision and in a fixed
 * order, so that results do not depend on the processor. Returned are the times at which extensors rise.
 */
#include <math.h>
#include <string.h>

#define LANES 8
#define MOST_NEURONS 64
#define MOST_SIGNALS 96

typedef struct {
    int neurons, oscillators, signals; /* oscillators come first; signals: neurons, inputs, and a 1 for the biases */
    const int *first;                  /* (neurons + 1) where the connections of each neuron begin */
    const int *source;                 /* which signal a connection carries */
    const double *weight;
    const double *rate;                /* (neurons) 4 dt over the unit's time */
    const double *stop, *start;        /* (oscillators) thresholds of the adaptation at drive 0 ... */
    const double *stop_slope, *start_slope; /* ... and what a drive of 1 adds */
    const double *tonic;               /* (oscillators) drive above which a burst does not end */
} Circuit;

static double clipped(double value, double low)
{
    value = value > low ? value : low;
    return value < 1.0 ? value : 1.0;
}

/* individuals: a multiple of LANES. inputs (individuals, inputs) are held; noise (draws, individuals, n_noisy) is added
 * to the inputs `noisy` (n_noisy), a new draw every `steps_per_draw` steps; draws may be 0. adaptation (individuals,
 * oscillators) at the start, everybody quiet. Counted are the steps from `settling` on. onsets (individuals, legs, most)
 * in steps, interpolated; counts (individuals, legs); stance (individuals, legs): steps above the threshold between the
 * first and the last onset; raised (individuals, legs): steps of the last onset. */
void run_rhythm(const Circuit *c, int individuals, int steps, int settling, const double *inputs, const double *noise,
                const int *noisy, int n_noisy, int steps_per_draw, const double *adaptation, const int *extensors,
                int legs, double threshold, int most, double *onsets, int *counts, int *stance)
{
    const int n = c->neurons, o = c->oscillators, n_inputs = c->signals - n - 1;
    for (int block = 0; block < individuals; block += LANES) {
        double now[MOST_SIGNALS][LANES] = {{0}}, next[MOST_NEURONS][LANES];
        double state[MOST_NEURONS][LANES] = {{0}}, active[MOST_NEURONS][LANES] = {{0}};
        int pending[16][LANES] = {{0}};
        for (int i = 0; i < o; i++)
            for (int p = 0; p < LANES; p++)
                state[i][p] = adaptation[(block + p) * o + i];
        for (int p = 0; p < LANES; p++)
            now[c->signals - 1][p] = 1.0;
        for (int t = 0; t < steps; t++) {
            for (int i = 0; i < n; i++) {
                double drive[LANES] = {0};
                for (int k = c->first[i]; k < c->first[i + 1]; k++) {
                    const double w = c->weight[k];
                    const double *from = now[c->source[k]];
                    for (int p = 0; p < LANES; p++)
                        drive[p] += w * from[p];
                }
                const double rate = c->rate[i], divisor = 1.0 + rate;
                if (i < o) {
                    const double stop = c->stop[i], start = c->start[i], tonic = c->tonic[i];
                    const double stop_slope = c->stop_slope[i], start_slope = c->start_slope[i];
                    for (int p = 0; p < LANES; p++) {
                        const double z = clipped(drive[p], 0.0);
                        const double a = (state[i][p] + rate * (1.0 - active[i][p])) / divisor;
                        const double stay = (a > stop + z * stop_slope) | (drive[p] > tonic) ? 1.0 : 0.0;
                        const double begin = (a >= start + z * start_slope) & (drive[p] >= 0.0) ? 1.0 : 0.0;
                        const double on = active[i][p] > 0.5 ? stay : begin;
                        state[i][p] = a;
                        active[i][p] = on;
                        next[i][p] = on * (0.5 + 0.5 * a);
                    }
                } else {
                    for (int p = 0; p < LANES; p++) {
                        const double v = (state[i][p] + rate * clipped(drive[p], -1.0)) / divisor;
                        state[i][p] = v;
                        next[i][p] = v > 0.0 ? v : 0.0;
                    }
                }
            }
            if (t >= settling) { /* the first counted step has no onset: there is none before it */
                for (int leg = 0; leg < legs; leg++) {
                    for (int p = 0; p < LANES; p++) {
                        const int at = (block + p) * legs + leg;
                        const double before = now[extensors[leg]][p], after = next[extensors[leg]][p];
                        if (t > settling && before <= threshold && after > threshold && counts[at] < most) {
                            const double low = t - settling - 1;
                            onsets[at * most + counts[at]++] = low + (threshold - before) / (after - before);
                            stance[at] += pending[leg][p];
                            pending[leg][p] = 0;
                        }
                        if (counts[at] > 0)
                            pending[leg][p] += after > threshold;
                    }
                }
            }
            memcpy(now, next, sizeof(double) * LANES * n);
            if (t == 0 || (n_noisy && t % steps_per_draw == 0)) {
                for (int i = 0; i < n_inputs; i++)
                    for (int p = 0; p < LANES; p++)
                        now[n + i][p] = inputs[(block + p) * n_inputs + i];
                for (int i = 0; i < n_noisy; i++)
                    for (int p = 0; p < LANES; p++)
                        now[n + noisy[i]][p] +=
                            noise[((long)(t / steps_per_draw) * individuals + block + p) * n_noisy + i];
            }
        }
    }
}
