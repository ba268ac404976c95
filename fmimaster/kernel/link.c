/* Messages over a socket: see link.h. */

#include <stddef.h>
#include <stdint.h>

#include "kernel.h"
#include "bell.h"
#include "link.h"

#include <string.h>

enum { PATIENCE = 20000000 }; /* [ns] until Python looks after the other end */
#define MOST ((uint64_t)1 << 31)
#define HEAD offsetof(fm_message, is_crowded)
#define HEAD_SIZE (offsetof(fm_message, requests) - HEAD)

/* What a message begins with. */
typedef struct {
    uint64_t size; /* of what follows */
    uint32_t number, logged;
} fm_start;

void fm_take_head(fm_message *to, const fm_message *from)
{
    memcpy((char *)to + HEAD, (const char *)from + HEAD, HEAD_SIZE);
}

/* Sending ------------------------------------------------------------------------------------------------------------- */

/* Returns whether it waits no more. */
static int is_given_up(const fm_link *l)
{
    return l->look && l->look(l->self);
}

static int push(fm_link *l, const char *from, size_t n)
{
    while (n > 0) {
        ptrdiff_t sent = fm_send(l->socket, from, n);
        if (sent < 0)
            l->is_closed = 1;
        if (sent == 0)
            fm_wait_to_send(l->socket, PATIENCE);
        if (l->is_closed || (sent == 0 && is_given_up(l)))
            return FM_ERROR;
        from += sent;
        n -= (size_t)sent;
    }
    return FM_OK;
}

static int put(fm_link *l, const void *from, size_t n)
{
    if (l->filled + n > FM_LINK_ROOM) {
        int status = push(l, l->sent, l->filled);
        l->filled = 0;
        if (status != FM_OK || n > FM_LINK_ROOM)
            return status != FM_OK ? status : push(l, from, n);
    }
    memcpy(l->sent + l->filled, from, n);
    l->filled += n;
    return FM_OK;
}

void fm_link_add(fm_link *l, const void *at, size_t size)
{
    l->parts[l->n_parts++] = (fm_part){at, size};
}

static size_t size_of_parts(const fm_link *l)
{
    size_t size = 0;
    for (int i = 0; i < l->n_parts; i++)
        size += l->parts[i].size;
    return size;
}

int fm_link_send(fm_link *l, const fm_message *m, uint32_t number, int n_requests)
{
    size_t size = HEAD_SIZE + sizeof(fm_request) * (size_t)n_requests;
    fm_start start = {size + size_of_parts(l), number, m->logged};
    int status = put(l, &start, sizeof start);
    if (status == FM_OK)
        status = put(l, (const char *)m + HEAD, size);
    for (int i = 0; i < l->n_parts && status == FM_OK; i++)
        status = put(l, l->parts[i].at, l->parts[i].size);
    if (status == FM_OK)
        status = push(l, l->sent, l->filled);
    l->filled = 0;
    l->n_parts = 0;
    return status;
}

/* Receiving ----------------------------------------------------------------------------------------------------------- */

int fm_link_refuse(fm_link *l)
{
    l->is_damaged = 1;
    return FM_ERROR;
}

static int receive_some(fm_link *l, int waits)
{
    if (l->begin == l->end && !l->is_closed) {
        ptrdiff_t n = fm_receive(l->socket, l->received, FM_LINK_ROOM, waits);
        l->is_closed = n < 0;
        l->begin = 0;
        l->end = n < 0 ? 0 : (size_t)n;
    }
    return l->begin != l->end || l->is_closed;
}

static int has_received(void *link)
{
    return receive_some(link, 0);
}

static int receive(fm_link *l)
{
    if (!spin(&l->spin, l->head.is_crowded, has_received, l))
        while (!receive_some(l, 1))
            if (is_given_up(l))
                return FM_ERROR;
    return l->is_closed ? FM_ERROR : FM_OK;
}

/* Bytes of the stream; to null they are dropped. */
static int next(fm_link *l, char *to, uint64_t n)
{
    while (n > 0) {
        if (l->begin == l->end && receive(l) != FM_OK)
            return FM_ERROR;
        size_t part = l->end - l->begin;
        part = part < n ? part : (size_t)n;
        if (to) {
            memcpy(to, l->received + l->begin, part);
            to += part;
        }
        l->begin += part;
        n -= part;
    }
    return FM_OK;
}

int fm_link_begin(fm_link *l)
{
    fm_start start;
    if (next(l, (char *)&start, sizeof start) != FM_OK)
        return FM_ERROR;
    if (start.size < HEAD_SIZE || start.size > MOST)
        return fm_link_refuse(l);
    l->number = start.number;
    l->logged = start.logged;
    l->left = start.size;
    return fm_link_take(l, (char *)&l->head + HEAD, HEAD_SIZE);
}

int fm_link_take(fm_link *l, void *to, size_t size)
{
    if (size > l->left)
        return fm_link_refuse(l);
    l->left -= size;
    return next(l, to, size);
}

int fm_link_take_values(fm_link *l)
{
    if (size_of_parts(l) != l->left)
        return fm_link_refuse(l);
    for (int i = 0; i < l->n_parts; i++)
        if (fm_link_take(l, (void *)l->parts[i].at, l->parts[i].size) != FM_OK)
            return FM_ERROR;
    l->n_parts = 0;
    return FM_OK;
}

int fm_link_skip(fm_link *l)
{
    return next(l, 0, l->left);
}
