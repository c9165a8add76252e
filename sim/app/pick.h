#ifndef SIM_APP_PICK_H
#define SIM_APP_PICK_H
/* What an action works on: a file or folder out of the app's view, picked by the number that was drawn with the plan,
 * and the names it gives. A view changes whenever the app yields: so what is needed later is copied out of it.
 * Layer 3. */
#include "sim/app/actions.h"

bool action_pick_file(struct action *x, uint64_t pick, struct picked *t); /* false: the view has none */
/* An open folder that is there, other than `but`; VIEW_NONE when there is none. */
uint32_t action_pick_folder(const struct action *x, uint64_t pick, uint32_t but);
/* Where people put new things: folders in proportion to what they hold already, so that busy ones stay busy. */
uint32_t action_pick_busy_folder(const struct action *x, uint64_t pick);
const char *action_extension(struct action *x, const char *name); /* "txt", ""; lives as long as the action */
/* "Upload 1a2b-7-3.txt" into dst: no other app and no other run gives that name. ext "": none. */
void action_new_name(struct action *x, const char *verb, const char *ext, char dst[DRIVE_NAME_MAX + 1]);
void action_text(char *dst, size_t n, const char *src); /* copies, cut to fit; src may be NULL */
#endif
