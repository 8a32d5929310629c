// Publishes with paho.golang, one connection: QoS 0 in a row, or QoS 1 from several goroutines, each waiting for its PUBACK. Or receives at QoS 0.
//
// Usage: bench PORT COUNT QOS CONCURRENCY. CONCURRENCY 0 receives COUNT messages. Prints messages per second of the last of four passes; for QoS 0 its
// time ends when a message behind the others was acknowledged.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/paho"
)

func number(index int) int {
	value, err := strconv.Atoi(os.Args[index])
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	port, count, qos, concurrency := number(1), number(2), number(3), number(4)
	ctx := context.Background()
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	check(err)
	received, complete := 0, make(chan struct{})
	client := paho.NewClient(paho.ClientConfig{
		Conn: connection,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(paho.PublishReceived) (bool, error) {
			if received++; received%count == 0 {
				complete <- struct{}{}
			}
			return true, nil
		}},
	})
	_, err = client.Connect(ctx, &paho.Connect{ClientID: fmt.Sprintf("go-%d", os.Getpid()), KeepAlive: 60, CleanStart: true})
	check(err)
	topics := make([]string, 100)
	for index := range topics {
		topics[index] = fmt.Sprintf("plants/hall-%02d/level", index)
	}
	payload := make([]byte, 256)
	publish := func(topic string, qos int) {
		_, err := client.Publish(ctx, &paho.Publish{Topic: topic, QoS: byte(qos), Payload: payload})
		check(err)
	}
	run := func(count int) time.Duration {
		start := time.Now()
		if concurrency == 0 {
			filter := fmt.Sprintf("N%d/%d/0", count, len(payload))
			_, err := client.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: filter}}})
			check(err)
			<-complete
			return time.Since(start)
		}
		var next atomic.Int64
		var workers sync.WaitGroup
		for range concurrency {
			workers.Go(func() {
				for {
					index := int(next.Add(1)) - 1
					if index >= count {
						return
					}
					publish(topics[index%100], qos)
				}
			})
		}
		workers.Wait()
		if qos == 0 {
			publish("fence", 1)
		}
		return time.Since(start)
	}
	for range 3 {
		run(count)
	}
	fmt.Println(float64(count) / run(count).Seconds())
	check(client.Disconnect(&paho.Disconnect{}))
}
