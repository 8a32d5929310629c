//! Publishes with rumqttc (MQTT 5.0), one connection: QoS 0 in a row, or QoS 1 with so many at a time. Or receives at QoS 0.
//!
//! Usage: bench PORT COUNT QOS CONCURRENCY THREADS CAPACITY. CONCURRENCY 0 receives COUNT messages. Prints messages per second of the last of four passes;
//! its time ends with the last acknowledgement, which for QoS 0 is that of a message behind the others.

use rumqttc::v5::mqttbytes::v5::Packet;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::{AsyncClient, Event, MqttOptions};
use std::time::Instant;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver};

struct Bench {
    client: AsyncClient,
    acknowledged: UnboundedReceiver<()>,
    topics: Vec<String>,
    qos: u64,
    concurrency: u64,
}

impl Bench {
    async fn publish(&self, index: u64, qos: QoS) {
        let topic = &self.topics[(index % 100) as usize];
        self.client.publish(topic, qos, false, vec![b'x'; 256]).await.expect("publish");
    }

    async fn run(&mut self, count: u64) -> f64 {
        let start = Instant::now();
        if self.concurrency == 0 {
            self.client.subscribe(format!("N{count}/256/0"), QoS::AtMostOnce).await.expect("subscribe");
            self.acknowledged.recv().await;
        } else if self.qos == 0 {
            for index in 0..count {
                self.publish(index, QoS::AtMostOnce).await;
            }
            self.publish(0, QoS::AtLeastOnce).await;
            self.acknowledged.recv().await;
        } else {
            for index in 0..self.concurrency.min(count) {
                self.publish(index, QoS::AtLeastOnce).await;
            }
            for done in 1..=count {
                self.acknowledged.recv().await;
                let next = done + self.concurrency - 1;
                if next < count {
                    self.publish(next, QoS::AtLeastOnce).await;
                }
            }
        }
        count as f64 / start.elapsed().as_secs_f64()
    }
}

async fn bench(numbers: Vec<u64>) {
    let [port, count, qos, concurrency, _, capacity] = numbers[..] else { panic!("six arguments") };
    let mut options = MqttOptions::new(format!("rust-{}", std::process::id()), "127.0.0.1", port as u16);
    options.set_clean_start(true).set_keep_alive(std::time::Duration::from_secs(60));
    let mut network = options.network_options();
    network.set_tcp_nodelay(true);
    options.set_network_options(network);
    let (client, mut events) = AsyncClient::new(options, capacity as usize);
    let (tell, acknowledged) = unbounded_channel();
    tokio::spawn(async move {
        let mut received = 0;
        loop {
            match events.poll().await {
                Ok(Event::Incoming(Packet::PubAck(_))) => {
                    if tell.send(()).is_err() {
                        return;
                    }
                }
                Ok(Event::Incoming(Packet::Publish(_))) => {
                    received += 1;
                    if received % count == 0 && tell.send(()).is_err() {
                        return;
                    }
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    });
    let topics = (0..100).map(|index| format!("plants/hall-{index:02}/level")).collect();
    let mut bench = Bench { client, acknowledged, topics, qos, concurrency };
    for _ in 0..3 {
        bench.run(count).await;
    }
    println!("{}", bench.run(count).await);
    let _ = bench.client.disconnect().await;
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).map(|text| text.parse().expect("a number")).collect();
    let runtime = if numbers[4] == 1 {
        tokio::runtime::Builder::new_current_thread().enable_all().build()
    } else {
        tokio::runtime::Builder::new_multi_thread().worker_threads(numbers[4] as usize).enable_all().build()
    };
    runtime.expect("runtime").block_on(bench(numbers));
}
