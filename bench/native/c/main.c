/*
 * Publishes with libmosquitto (MQTT 5.0), one connection: QoS 0 in a row, or QoS 1 with so many at a time. Or receives at QoS 0.
 *
 * Usage: bench PORT COUNT QOS CONCURRENCY THREADED. CONCURRENCY 0 receives COUNT messages. THREADED 1: the network has a thread of the library. Prints
 * messages per second of the last of four passes; for QoS 0 its time ends when a message behind the others was acknowledged.
 */
#include <mosquitto.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static struct mosquitto *client;
static char topics[100][32], payload[256];
static int port, qos, concurrency, threaded;
static long count, begun;
static volatile long done;
static volatile int connected;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

static void check(int result) {
  if (result == MOSQ_ERR_SUCCESS) return;
  fprintf(stderr, "%s\n", mosquitto_strerror(result));
  exit(1);
}

static void publish(int quality) { check(mosquitto_publish_v5(client, 0, topics[begun++ % 100], sizeof payload, payload, quality, 0, 0)); }

static void on_connect(struct mosquitto *of, void *user, int code) {
  (void)of, (void)user, check(code);
  connected = 1;
}

static void on_publish(struct mosquitto *of, void *user, int id) {
  (void)of, (void)user, (void)id;
  done++;
  if (qos == 1 && begun < count) publish(1);
}

static void on_message(struct mosquitto *of, void *user, const struct mosquitto_message *message) {
  (void)of, (void)user;
  if (message->payloadlen == sizeof payload) done++;
}

static void until(volatile long *value, long wanted) {
  while (*value < wanted) {
    if (threaded) usleep(100);
    else check(mosquitto_loop(client, -1, 1));
  }
}

static double pass(void) {
  double start = now();
  char filter[64];
  begun = done = 0;
  if (concurrency == 0) {
    snprintf(filter, sizeof filter, "N%ld/%zu/0", count, sizeof payload);
    check(mosquitto_subscribe(client, 0, filter, 0));
    until(&done, count);
  } else if (qos == 0) {
    while (begun < count) publish(0);
    publish(1);
    until(&done, count + 1);
  } else {
    while (begun < concurrency) publish(1);
    until(&done, count);
  }
  return count / (now() - start);
}

int main(int size, char **given) {
  if (size < 6) return 2;
  port = atoi(given[1]), count = atol(given[2]), qos = atoi(given[3]), concurrency = atoi(given[4]), threaded = atoi(given[5]);
  for (int index = 0; index < 100; index++) snprintf(topics[index], sizeof topics[index], "plants/hall-%02d/level", index);
  mosquitto_lib_init();
  client = mosquitto_new(0, 1, 0);
  mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
  mosquitto_int_option(client, MOSQ_OPT_SEND_MAXIMUM, 65535);
  mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
  mosquitto_connect_callback_set(client, on_connect);
  mosquitto_publish_callback_set(client, on_publish);
  mosquitto_message_callback_set(client, on_message);
  check(mosquitto_connect(client, "127.0.0.1", port, 60));
  if (threaded) check(mosquitto_loop_start(client));
  while (!connected) {
    if (threaded) usleep(100);
    else check(mosquitto_loop(client, -1, 1));
  }
  for (int warm = 0; warm < 3; warm++) pass();
  printf("%f\n", pass());
  return 0;
}
