/*
 * A server that is never the limit: it answers CONNECT, SUBSCRIBE, UNSUBSCRIBE and PINGREQ, acknowledges QoS 1 and 2, and swallows the rest.
 *
 * A filter `N<count>/<size>[/<user properties>[/<rate>]]` asks for that many PUBLISH packets over 100 topics of 20 bytes, at the QoS of the filter, from a
 * prepared block, and not more of them a second than the rate. With `/1` behind the rate each leaves when it is due and not with others a millisecond
 * later, and its payload begins with that time: four bytes, microseconds of the monotonic clock modulo 2^32. It keeps to the Receive Maximum of the CONNECT. For measurements only: it trusts its client and checks nothing.
 * A filter `X` ends all connections at once. Prints its port, and ends when its standard input ends.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { topics = 100, input_size = 1 << 20, answers_size = 1 << 20, slice = 1 << 18 };

struct block {
  struct block *next;
  unsigned version, qos, size, properties;
  unsigned count;
  size_t frame;
  unsigned char *bytes;
};

static struct block *blocks;
static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned char *put_length(unsigned char *at, unsigned length) {
  do {
    *at++ = (length & 127) | (length > 127 ? 128 : 0);
    length >>= 7;
  } while (length);
  return at;
}

static unsigned length_size(unsigned length) { return length < 128 ? 1 : length < 16384 ? 2 : length < 2097152 ? 3 : 4; }

static struct block *make_block(unsigned version, unsigned qos, unsigned size, unsigned properties) {
  struct block *made = malloc(sizeof *made);
  unsigned each = 1 + 2 + 5 + 2 + 7, all = properties * each;
  unsigned remaining = 2 + 20 + (qos ? 2 : 0) + (version == 5 ? length_size(all) + all : 0) + size;
  *made = (struct block){.version = version, .qos = qos, .size = size, .properties = properties};
  made->frame = 1 + length_size(remaining) + remaining;
  made->count = (1 << 20) / made->frame;
  if (made->count < 64) made->count = 64;
  if (made->count > 20000) made->count = 20000;
  made->bytes = malloc(made->frame * made->count);
  unsigned random = 12345;
  unsigned char *at = made->bytes;
  for (unsigned index = 0; index < made->count; index++) {
    char topic[32];
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    snprintf(topic, sizeof topic, "plants/hall-%02u/level", random % topics);
    *at++ = 0x30 | qos << 1;
    at = put_length(at, remaining);
    *at++ = 0;
    *at++ = 20;
    memcpy(at, topic, 20);
    at += 20;
    if (qos) {
      *at++ = (index + 1) >> 8;
      *at++ = (index + 1) & 255;
    }
    if (version == 5) at = put_length(at, all);
    for (unsigned property = 0; version == 5 && property < properties; property++) {
      char pair[32];
      snprintf(pair, sizeof pair, "\x26%c\x05key-%u%c\x07value-%u", 0, property % 10, 0, property % 10);
      memcpy(at, pair, each);
      at += each;
    }
    memset(at, 'a' + index % 26, size);
    at += size;
  }
  return made;
}

static struct block *block_for(unsigned version, unsigned qos, unsigned size, unsigned properties) {
  pthread_mutex_lock(&blocks_lock);
  struct block *found = blocks;
  while (found && (found->version != version || found->qos != qos || found->size != size || found->properties != properties)) found = found->next;
  if (!found) {
    found = make_block(version, qos, size, properties);
    found->next = blocks;
    blocks = found;
  }
  pthread_mutex_unlock(&blocks_lock);
  return found;
}

/* The sockets of all clients. */
enum { most_sockets = 1 << 16 };
static atomic_bool connected[most_sockets];

/* Those that are there now: who comes back meanwhile stays. */
static void end_all(void) {
  unsigned char there[most_sockets];
  for (int socket = 0; socket < most_sockets; socket++) there[socket] = connected[socket];
  for (int socket = 0; socket < most_sockets; socket++)
    if (there[socket]) shutdown(socket, SHUT_RDWR);
}

struct client {
  int socket;
  unsigned version;
  /* what came and is not read to its end */
  unsigned char *input;
  size_t held;
  /* bytes of a PUBLISH that are still to be swallowed */
  size_t swallow;
  unsigned char *answers;
  size_t answered;
  unsigned receive_maximum;
  struct block *block;
  /* PUBLISH packets: asked for, and acknowledged */
  unsigned long long wanted, acknowledged;
  /* bytes of them that have left */
  unsigned long long sent;
  /* PUBLISH packets a second, 0 for no limit; counted from here, in nanoseconds */
  unsigned long rate;
  unsigned long long since;
  /* whether payloads begin with the time at which they are due: in a block of its own */
  int stamped;
};

static unsigned long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* How many PUBLISH packets may have left by now. */
static unsigned long long limit_of(const struct client *client) {
  unsigned window = client->receive_maximum < client->block->count ? client->receive_maximum : client->block->count;
  unsigned long long limit = client->wanted;
  if (client->block->qos && client->acknowledged + window < limit) limit = client->acknowledged + window;
  if (client->rate) {
    unsigned long long due = (now() - client->since) / 1000 * client->rate / 1000000;
    if (due < limit) limit = due;
  }
  return limit;
}

/* When a PUBLISH packet is due, in nanoseconds. */
static unsigned long long due_at(const struct client *client, unsigned long long index) {
  return client->since + (index + 1) * 1000000000ull / client->rate;
}

/* Writes the times into the packets of which the next `size` bytes are. */
static void stamp(const struct client *client, size_t size) {
  const struct block *block = client->block;
  for (unsigned long long index = client->sent / block->frame; index * block->frame < client->sent + size; index++) {
    unsigned due = due_at(client, index) / 1000;
    unsigned char *at = block->bytes + (index % block->count + 1) * block->frame - block->size;
    for (int byte = 0; byte < 4; byte++) at[byte] = due >> (24 - 8 * byte);
  }
}

/* Blocking, while nothing is being streamed. */
static int send_all(struct client *client) {
  size_t done = 0;
  while (done < client->answered) {
    ssize_t sent = send(client->socket, client->answers + done, client->answered - done, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      struct pollfd wait = {.fd = client->socket, .events = POLLOUT};
      poll(&wait, 1, -1);
      continue;
    }
    if (sent <= 0) return -1;
    done += sent;
  }
  client->answered = 0;
  return 0;
}

static int answer(struct client *client, const unsigned char *bytes, size_t length) {
  if (client->answered + length > answers_size && send_all(client)) return -1;
  memcpy(client->answers + client->answered, bytes, length);
  client->answered += length;
  return 0;
}

static int connect_packet(struct client *client, const unsigned char *body) {
  client->version = body[6];
  client->receive_maximum = 65535;
  if (client->version == 4) return answer(client, (const unsigned char[]){0x20, 2, 0, 0}, 4);
  const unsigned char *property = body + 11, *end = property + body[10];
  while (property < end) {
    switch (*property) {
    case 0x21:
      client->receive_maximum = property[1] << 8 | property[2];
      property += 3;
      break;
    case 0x22:
      property += 3;
      break;
    case 0x11:
    case 0x27:
      property += 5;
      break;
    case 0x17:
    case 0x19:
      property += 2;
      break;
    default:
      property = end;
    }
  }
  /* Subscription Identifiers are not available, since the stream carries none. */
  return answer(client, (const unsigned char[]){0x20, 5, 0, 0, 2, 0x29, 0}, 7);
}

static int subscribe_packet(struct client *client, const unsigned char *body, size_t length, int unsubscribe) {
  unsigned char reply[512];
  size_t at = 2, count = 0;
  if (client->version == 5) at += 1 + body[2];
  reply[0] = unsubscribe ? 0xb0 : 0x90;
  reply[2] = body[0];
  reply[3] = body[1];
  reply[4] = 0;
  /* The reason codes stand behind the properties; 3.1.1 has neither for UNSUBACK. */
  size_t codes = client->version == 5 ? 5 : 4;
  while (at < length && count < 120) {
    unsigned size = body[at] << 8 | body[at + 1];
    const char *filter = (const char *)body + at + 2;
    unsigned qos = unsubscribe ? 0 : body[at + 2 + size] & 3;
    if (!unsubscribe && size > 1 && filter[0] == 'N' && filter[1] >= '0' && filter[1] <= '9') {
      char text[64] = {0}, *next;
      memcpy(text, filter + 1, size - 1 < 60 ? size - 1 : 60);
      unsigned long long wanted = strtoull(text, &next, 10);
      unsigned bytes = *next == '/' ? strtoul(next + 1, &next, 10) : 256;
      unsigned properties = *next == '/' ? strtoul(next + 1, &next, 10) : 0;
      client->rate = *next == '/' ? strtoul(next + 1, &next, 10) : 0;
      client->since = now();
      client->stamped = client->rate && bytes >= 4 && *next == '/' && next[1] == '1';
      /* Without slack, a wait ends when it should. */
      if (client->stamped) prctl(PR_SET_TIMERSLACK, 1);
      struct block *block = (client->stamped ? make_block : block_for)(client->version, qos, bytes, properties);
      if (block != client->block) client->wanted = client->sent = client->acknowledged = 0;
      client->block = block;
      client->wanted += wanted;
    }
    if (!unsubscribe && size == 1 && filter[0] == 'X') end_all();
    reply[codes + count++] = qos;
    at += 2 + size + (unsubscribe ? 0 : 1);
  }
  if (client->version == 4 && unsubscribe) count = 0;
  reply[1] = codes - 2 + count;
  return answer(client, reply, codes + count);
}

/* One whole packet but PUBLISH, or the head of a PUBLISH. */
static int packet(struct client *client, unsigned char first, const unsigned char *body, size_t length) {
  switch (first >> 4) {
  case 1:
    return connect_packet(client, body);
  case 3: {
    if (!(first & 6)) return 0;
    const unsigned char *id = body + 2 + (body[0] << 8 | body[1]);
    return answer(client, (const unsigned char[]){first & 2 ? 0x40 : 0x50, 2, id[0], id[1]}, 4);
  }
  case 4:
  case 7:
    client->acknowledged++;
    return 0;
  case 5:
    return answer(client, (const unsigned char[]){0x62, 2, body[0], body[1]}, 4);
  case 6:
    return answer(client, (const unsigned char[]){0x70, 2, body[0], body[1]}, 4);
  case 8:
  case 10:
    return subscribe_packet(client, body, length, first >> 4 == 10);
  case 12:
    return answer(client, (const unsigned char[]){0xd0, 0}, 2);
  case 14:
    return -1;
  }
  return 0;
}

/* Reads what is there, once. */
static int receive(struct client *client) {
  ssize_t got = recv(client->socket, client->input + client->held, input_size - client->held, 0);
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
  if (got == 0) return -1;
  const unsigned char *at = client->input, *end = client->input + client->held + got;
  while (at < end) {
    if (client->swallow) {
      size_t part = client->swallow < (size_t)(end - at) ? client->swallow : (size_t)(end - at);
      at += part;
      client->swallow -= part;
      continue;
    }
    if (end - at < 2) break;
    const unsigned char *body = at + 1;
    size_t length = 0;
    unsigned shift = 0, complete = 0;
    while (body < end && !complete) {
      length |= (size_t)(*body & 127) << shift;
      shift += 7;
      complete = *body++ < 128;
    }
    if (!complete) break;
    size_t there = end - body;
    if (there < length && (*at >> 4 != 3 || there < 2 || there < (size_t)(body[0] << 8 | body[1]) + 4)) break;
    if (packet(client, *at, body, length)) return -1;
    if (there < length) {
      client->swallow = length - there;
      at = end;
    } else at = body + length;
  }
  client->held = end - at;
  memmove(client->input, at, client->held);
  /* Answers must not fall into the middle of a packet. */
  return client->block && client->sent % client->block->frame ? 0 : send_all(client);
}

/* 1 when something left, 0 when nothing may or can, -1 at the end. */
static int stream(struct client *client) {
  struct block *block = client->block;
  unsigned long long left = limit_of(client) * block->frame - client->sent;
  if (!left) return 0;
  size_t whole = block->frame * block->count, from = client->sent % whole, size = whole - from;
  if (size > left) size = left;
  if (size > slice) size = slice;
  if (client->stamped) stamp(client, size);
  ssize_t sent = send(client->socket, block->bytes + from, size, MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
  client->sent += sent;
  return 1;
}

static void *serve(void *argument) {
  struct client client = {.socket = (int)(long)argument, .input = malloc(input_size), .answers = malloc(answers_size)};
  fcntl(client.socket, F_SETFL, fcntl(client.socket, F_GETFL) | O_NONBLOCK);
  for (;;) {
    int streaming = client.block && client.sent < client.wanted * client.block->frame;
    if (client.answered && (!streaming || client.sent % client.block->frame == 0) && send_all(&client)) break;
    int moved = streaming ? stream(&client) : 0;
    if (moved < 0) break;
    if (moved && !client.block->qos && !client.rate) continue;
    struct pollfd wait = {.fd = client.socket, .events = POLLIN};
    int open = streaming && client.sent < limit_of(&client) * client.block->frame;
    if (open) wait.events |= POLLOUT;
    struct timespec until = {0}, *patience = &until;
    if (!moved && streaming && !open && client.rate) {
      until.tv_nsec = 1000000;
      if (client.stamped) {
        unsigned long long due = due_at(&client, client.sent / client.block->frame), time = now();
        until.tv_nsec = due <= time ? 0 : due - time < 999999999 ? due - time : 999999999;
      }
    } else if (!moved) patience = 0;
    if (ppoll(&wait, 1, patience, 0) < 0 && errno != EINTR) break;
    if (wait.revents & (POLLIN | POLLHUP | POLLERR) && receive(&client)) break;
  }
  if (client.socket < most_sockets) connected[client.socket] = 0;
  close(client.socket);
  free(client.input);
  free(client.answers);
  return 0;
}

static void *until_the_end_of_input(void *unused) {
  char byte;
  (void)unused;
  while (read(0, &byte, 1) > 0);
  _exit(0);
}

int main(void) {
  int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  pthread_t thread;
  if (bind(listener, (void *)&address, sizeof address) || listen(listener, 4096)) return 1;
  getsockname(listener, (void *)&address, &size);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  pthread_create(&thread, 0, until_the_end_of_input, 0);
  for (;;) {
    int client = accept(listener, 0, 0);
    if (client < 0) continue;
    if (client < most_sockets) connected[client] = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    pthread_create(&thread, 0, serve, (void *)(long)client);
    pthread_detach(thread);
  }
}
