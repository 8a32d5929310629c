// A mochi-mqtt broker for the features of test/real: on TCP, TLS, WebSocket, secure WebSocket and a Unix socket, in one of the setups that
// test/real/brokers.ts names. mochi itself is used as it is; what it leaves to hooks (who may do what, the keep-alive of the server) is in the
// hooks below.
package main

import (
	"crypto/tls"
	"flag"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/hooks/storage/bolt"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
)

// guardHook lets one user in, and refuses what is below the second level "denied".
type guardHook struct {
	mqtt.HookBase
	username, password string
}

func (h *guardHook) ID() string { return "guard" }

func (h *guardHook) Provides(event byte) bool {
	return event == mqtt.OnConnectAuthenticate || event == mqtt.OnACLCheck
}

func (h *guardHook) OnConnectAuthenticate(_ *mqtt.Client, connect packets.Packet) bool {
	return string(connect.Connect.Username) == h.username && string(connect.Connect.Password) == h.password
}

func (h *guardHook) OnACLCheck(_ *mqtt.Client, topic string, _ bool) bool {
	return !strings.Contains(topic, "/denied/")
}

// keepAliveHook is the way that mochi offers to shorten the keep-alive of a client.
type keepAliveHook struct {
	mqtt.HookBase
	seconds uint16
}

func (h *keepAliveHook) ID() string { return "keep-alive" }

func (h *keepAliveHook) Provides(event byte) bool { return event == mqtt.OnConnect }

func (h *keepAliveHook) OnConnect(client *mqtt.Client, _ packets.Packet) error {
	if client.State.Keepalive == 0 || client.State.Keepalive > h.seconds {
		client.State.Keepalive, client.State.ServerKeepalive = h.seconds, true
	}
	return nil
}

// windowHook frees clients that take everything from the window that mochi keeps for each: looking for the next message to send, it takes a read lock
// twice, and is stuck for good, with its clock, when another client publishes at that moment. Clients with a window of their own still have it.
type windowHook struct {
	mqtt.HookBase
}

func (h *windowHook) ID() string { return "window" }

func (h *windowHook) Provides(event byte) bool { return event == mqtt.OnSessionEstablished }

func (h *windowHook) OnSessionEstablished(client *mqtt.Client, connect packets.Packet) {
	if connect.Properties.ReceiveMaximum == 0 || connect.Properties.ReceiveMaximum > 8192 {
		client.State.Inflight.ResetSendQuota(0)
	}
}

func main() {
	setup := flag.String("setup", "plain", "plain, narrow, lesser, guarded, scram or durable")
	username, password := flag.String("username", "", "who is let in when guarded"), flag.String("password", "", "of that user")
	users, iterations := flag.String("users", "{}", "who is let in by SCRAM"), flag.Int("iterations", 4096, "rounds of SCRAM")
	lie := flag.Bool("lie", false, "send wrong signatures of SCRAM")
	database := flag.String("database", "", "file to remember in when durable")
	addresses := map[string]*string{}
	for _, id := range []string{"tcp", "tls", "ws", "wss", "unix"} {
		addresses[id] = flag.String(id, "", "address to listen on")
	}
	certificate, key := flag.String("cert", "", "PEM file"), flag.String("key", "", "PEM file")
	flag.Parse()

	broker := mqtt.New(&mqtt.Options{
		Capabilities: capabilities(*setup),
		Logger:       slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if *setup == "guarded" {
		must(broker.AddHook(&guardHook{username: *username, password: *password}, nil))
	} else {
		must(broker.AddHook(new(auth.AllowHook), nil))
	}
	must(broker.AddHook(new(windowHook), nil))
	if *setup == "scram" {
		must(broker.AddHook(newScramHook(*users, *iterations, *lie), nil))
	}
	if *setup == "narrow" {
		must(broker.AddHook(&keepAliveHook{seconds: 15}, nil))
	}
	if *setup == "durable" {
		must(broker.AddHook(new(bolt.Hook), &bolt.Options{Path: *database}))
	}
	for id, address := range addresses {
		if *address != "" {
			must(broker.AddListener(listener(id, *address, *certificate, *key)))
		}
	}
	must(broker.Serve())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	<-signals
	_ = broker.Close()
}

func capabilities(setup string) *mqtt.Capabilities {
	given := mqtt.NewDefaultServerCapabilities()
	given.Compatibilities.NoInheritedPropertiesOnAck = true
	switch setup {
	case "narrow":
		given.ReceiveMaximum, given.MaximumPacketSize = 20, 2000
	case "lesser":
		given.MaximumQos, given.RetainAvailable = 1, 0
	}
	return given
}

func listener(id, address, certificate, key string) listeners.Listener {
	config := listeners.Config{ID: id, Address: address}
	if id == "tls" || id == "wss" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		must(err)
		config.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}}
	}
	switch id {
	case "ws", "wss":
		return listeners.NewWebsocket(config)
	case "unix":
		return listeners.NewUnixSock(config)
	}
	return listeners.NewTCP(config)
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
