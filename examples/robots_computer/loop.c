/* A loop at 1 kHz: exported inverse kinematics move the hand of a Panda up by 5 cm, on a robot that follows perfectly.
 *
 *     gcc -O2 loop.c -L out -I out -lpanda_ik -lpanda_hand -o loop
 *     sudo chrt -f 80 taskset -c 3 ./loop
 */
#define _POSIX_C_SOURCE 200112L
#include "panda_hand.h"
#include "panda_ik.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static unsigned char workspace[PANDA_IK_WORKSPACE_BYTES], other[HAND_WORKSPACE_BYTES];

int main(int count, char **arguments)
{
    static panda_ik_input input;
    static panda_ik_output output;
    const int ticks = count > 1 ? atoi(arguments[1]) : 2000;
    const double start[] = {0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8, 0.02};
    struct timespec next;
    int status, tick, k;

    mlockall(MCL_CURRENT | MCL_FUTURE); /* no page faults later; needs a limit of locked memory or root */
    panda_ik_reset(workspace);
    panda_ik_defaults(&input);
    for (k = 0; k < 8; k++) {
        input.q[k] = input.target_posture[k] = start[k];
        input.speed[k] = 0.5;
    }
    input.dt = 0.001;
    input.gain = 0.02;
    hand(input.q, input.target_panda_hand, other);
    input.target_panda_hand[11] += 0.05;

    clock_gettime(CLOCK_MONOTONIC, &next);
    for (tick = 0; tick < ticks; tick++) {
        status = panda_ik_tick(workspace, &input, &output); /* with a robot: read q first, and write the velocity after */
        if (status != PANDA_IK_SOLVED) {
            printf("tick %d: %s\n", tick, panda_ik_status_words(status));
            return 1;
        }
        for (k = 0; k < 8; k++) {
            input.q[k] += input.dt * output.velocity[k];
        }
        next.tv_nsec += 1000000;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    {
        double reached[16];
        hand(input.q, reached, other);
        printf("%.4f m from the target\n", input.target_panda_hand[11] - reached[11]);
    }
    return 0;
}
