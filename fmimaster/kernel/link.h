/* Messages over a socket, for isolated.c and host.c. A message is its length and number, the head of an fm_message with its
 * requests if it asks, and values. Functions return FM_OK, or FM_ERROR if the link has ended: then it says why. */

/* Values of the next message, in their order. */
void fm_link_add(fm_link *link, const void *at, size_t size);
int fm_link_send(fm_link *link, const fm_message *message, uint32_t number, int n_requests);

/* Begin with the next message: its number, and its head. */
int fm_link_begin(fm_link *link);
int fm_link_take(fm_link *link, void *to, size_t size); /* the next part of it */
int fm_link_take_values(fm_link *link);                 /* to where they were added; nothing else may follow */
int fm_link_skip(fm_link *link);                        /* the rest of it */
int fm_link_refuse(fm_link *link);

/* What of a message is sent. */
void fm_take_head(fm_message *to, const fm_message *from);
