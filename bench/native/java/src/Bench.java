import com.hivemq.client.mqtt.MqttGlobalPublishFilter;
import com.hivemq.client.mqtt.datatypes.MqttQos;
import com.hivemq.client.mqtt.datatypes.MqttTopic;
import com.hivemq.client.mqtt.mqtt5.Mqtt5Client;
import com.hivemq.client.mqtt.mqtt5.message.publish.Mqtt5Publish;
import io.reactivex.Flowable;
import io.reactivex.schedulers.Schedulers;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Publishes with the HiveMQ MQTT Client, one connection, through its reactive API: QoS 0 in a row, or QoS 1 with so many at a time. Or receives at QoS 0.
 *
 * Usage: Bench PORT COUNT QOS CONCURRENCY. CONCURRENCY 0 receives COUNT messages. Prints messages per second of the last of four passes; for QoS 0 its time
 * ends when a message behind the others was acknowledged.
 */
public final class Bench {
  public static void main(String[] given) {
    int port = Integer.parseInt(given[0]), count = Integer.parseInt(given[1]);
    int qos = Integer.parseInt(given[2]), concurrency = Integer.parseInt(given[3]);
    var client = Mqtt5Client.builder().identifier("java-" + ProcessHandle.current().pid()).serverHost("127.0.0.1").serverPort(port)
        // Callbacks run where the bytes are read: with a thread of their own, messages of QoS 0 that come too fast are dropped.
        .executorConfig().applicationScheduler(Schedulers.trampoline()).applyExecutorConfig().build();
    client.toBlocking().connectWith().restrictions().sendMaximum(Math.max(1, concurrency)).applyRestrictions().send();
    var topics = new MqttTopic[100];
    for (int index = 0; index < 100; index++) topics[index] = MqttTopic.of(String.format("plants/hall-%02d/level", index));
    byte[] payload = new byte[256];
    var quality = MqttQos.fromCode(qos);
    var received = new AtomicLong();
    var complete = new Semaphore(0);
    client.toAsync().publishes(MqttGlobalPublishFilter.ALL, message -> {
      if (received.incrementAndGet() % count == 0) complete.release();
    });
    double rate = 0;
    for (int pass = 0; pass < 4; pass++) {
      long start = System.nanoTime();
      if (concurrency == 0) {
        client.toBlocking().subscribeWith().topicFilter("N" + count + "/256/0").qos(MqttQos.AT_MOST_ONCE).send();
        complete.acquireUninterruptibly();
      } else {
        var messages = Flowable.range(0, count).map(index -> Mqtt5Publish.builder().topic(topics[index % 100]).payload(payload).qos(quality).build());
        client.toRx().publish(messages).blockingSubscribe();
        if (qos == 0) client.toBlocking().publishWith().topic("fence").qos(MqttQos.AT_LEAST_ONCE).send();
      }
      rate = count / ((System.nanoTime() - start) / 1e9);
    }
    System.out.println(rate);
    System.exit(0);
  }
}
