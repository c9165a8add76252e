/* For how long answers of 429 are waited out. */
#include "drive/api/patience.h"
#include "unit.h"

static void time_and_what_was_asked_for(void **state)
{
    (void)state;
    static const struct {
        int64_t at_s, asked_s; /* -1: did not say */
        int status;
        bool waits;
    } rows[] = {
        {0, -1, 429, true},       {300, -1, 429, true},     {301, -1, 429, false},
        {302, -1, 429, false}, /* until an answer */
        {303, 0, 200, true},      {304, -1, 429, true},     {604, 0, 429, true},
        {605, 0, 429, false},     {700, 0, 500, true}, /* asking for nothing and for a second are the same 5 min; 100 s
                                                          are 400 s */
        {800, 1, 429, true},      {1100, 1, 429, true},     {1101, 1, 429, false},
        {1101, 100, 429, true},   {1200, 1, 429, true},     {1201, 1, 429, false},
        {2000, 0, 401, true}, /* a window of 15 min: an hour */
        {2000, 900, 429, true},   {3000, 900, 429, true},   {5599, 1, 429, true},
        {5601, 900, 429, false},  {5602, 0, 200, true},     {5603, 3600, 429, true},
        {9203, 3600, 429, true},  {9204, 3600, 429, false}, {9300, 0, 200, true},
        {9301, 3601, 429, false},
    };
    struct patience p = {0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct api_result r = {.status = rows[i].status,
                               .outcome = rows[i].status == 429 ? OUT_THROTTLED : OUT_OK,
                               .retry_after_us = rows[i].asked_s * (rows[i].asked_s < 0 ? 1 : US_PER_S),
                               .reason = "slow"};
        patience_told(&p, &r, (struct mono){(rows[i].at_s + 1) * US_PER_S});
        if ((r.outcome != OUT_REFUSED) != rows[i].waits)
            fail_msg("row %zu: %s", i, r.reason);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_and_what_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
