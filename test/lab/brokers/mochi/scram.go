// Enhanced authentication by SCRAM-SHA-256. The mechanism is that of github.com/xdg-go/scram, so that neither side of an exchange is ours.
package main

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
	"github.com/xdg-go/scram"
)

const method = "SCRAM-SHA-256"

const (
	success        = 0x00
	goOn           = 0x18
	again          = 0x19
	notAuthorized  = 0x87
	badAuthMethod  = 0x8c
	saltOfEveryone = "sixteen bytes!!!"
)

var errRefused = errors.New("authentication refused")

// scramHook runs one conversation for each connection, at CONNECT and at each re-authentication.
type scramHook struct {
	mqtt.HookBase
	server        *scram.Server
	lie           bool
	conversations sync.Map // *mqtt.Client to *scram.ServerConversation
	lastWords     sync.Map // *mqtt.Client to the server-final-message for its CONNACK
}

func (h *scramHook) ID() string { return "scram" }

func (h *scramHook) Provides(event byte) bool {
	switch event {
	case mqtt.OnConnect, mqtt.OnAuthPacket, mqtt.OnPacketEncode, mqtt.OnDisconnect:
		return true
	}
	return false
}

// OnConnect holds CONNACK back until the conversation is over.
func (h *scramHook) OnConnect(client *mqtt.Client, connect packets.Packet) error {
	if connect.Properties.AuthenticationMethod != method {
		return refuse(client, badAuthMethod)
	}
	if err := h.begin(client, connect.Properties.AuthenticationData); err != nil {
		return refuse(client, notAuthorized)
	}
	header := new(packets.FixedHeader)
	if err := client.ReadFixedHeader(header); err != nil {
		return err
	}
	answer, err := client.ReadPacket(header)
	if err != nil {
		return err
	}
	if header.Type != packets.Auth || answer.ReasonCode != goOn {
		return refuse(client, notAuthorized)
	}
	final, err := h.conclude(client, answer.Properties.AuthenticationData)
	if err != nil {
		return refuse(client, notAuthorized)
	}
	h.lastWords.Store(client, final)
	return nil
}

// OnAuthPacket is told of what comes in later: a re-authentication, and its second round.
func (h *scramHook) OnAuthPacket(client *mqtt.Client, packet packets.Packet) (packets.Packet, error) {
	if packet.Properties.AuthenticationMethod != method {
		return packet, packets.ErrBadAuthenticationMethod
	}
	if packet.ReasonCode == again {
		if err := h.begin(client, packet.Properties.AuthenticationData); err != nil {
			return packet, packets.ErrNotAuthorized
		}
		return packet, nil
	}
	final, err := h.conclude(client, packet.Properties.AuthenticationData)
	if err != nil {
		return packet, packets.ErrNotAuthorized
	}
	return packet, client.WritePacket(authPacket(success, final))
}

// OnPacketEncode adds the last words to CONNACK.
func (h *scramHook) OnPacketEncode(client *mqtt.Client, packet packets.Packet) packets.Packet {
	if packet.FixedHeader.Type != packets.Connack || packet.ReasonCode != success {
		return packet
	}
	if final, ok := h.lastWords.LoadAndDelete(client); ok {
		packet.Properties.AuthenticationMethod = method
		packet.Properties.AuthenticationData = []byte(final.(string))
	}
	return packet
}

func (h *scramHook) OnDisconnect(client *mqtt.Client, _ error, _ bool) {
	h.conversations.Delete(client)
}

func (h *scramHook) begin(client *mqtt.Client, first []byte) error {
	conversation := h.server.NewConversation()
	challenge, err := conversation.Step(string(first))
	if err != nil {
		return err
	}
	h.conversations.Store(client, conversation)
	return client.WritePacket(authPacket(goOn, challenge))
}

func (h *scramHook) conclude(client *mqtt.Client, last []byte) (string, error) {
	found, ok := h.conversations.LoadAndDelete(client)
	if !ok {
		return "", errRefused
	}
	final, err := found.(*scram.ServerConversation).Step(string(last))
	if h.lie && err == nil {
		final = "v=" + strings.Repeat("A", 43) + "="
	}
	return final, err
}

func authPacket(reasonCode byte, data string) packets.Packet {
	return packets.Packet{
		FixedHeader: packets.FixedHeader{Type: packets.Auth},
		ReasonCode:  reasonCode,
		Properties:  packets.Properties{AuthenticationMethod: method, AuthenticationData: []byte(data)},
	}
}

func refuse(client *mqtt.Client, reasonCode byte) error {
	_ = client.WritePacket(packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Connack}, ReasonCode: reasonCode})
	return errRefused
}

// credentials derives what a server stores of each user.
func credentials(users map[string]string, iterations int) (scram.CredentialLookup, error) {
	stored := map[string]scram.StoredCredentials{}
	for name, password := range users {
		client, err := scram.SHA256.NewClient(name, password, "")
		if err != nil {
			return nil, err
		}
		// Prepared and escaped: the library looks up what was sent, as it was sent.
		first, err := client.NewConversation().Step("")
		if err != nil {
			return nil, err
		}
		sent := strings.SplitN(strings.TrimPrefix(first, "n,,n="), ",", 2)[0]
		stored[sent] = client.GetStoredCredentials(scram.KeyFactors{Salt: saltOfEveryone, Iters: iterations})
	}
	return func(name string) (scram.StoredCredentials, error) {
		if found, ok := stored[name]; ok {
			return found, nil
		}
		return scram.StoredCredentials{}, errRefused
	}, nil
}

// newScramHook takes users as a JSON object of names and passwords, PBKDF2 rounds, and whether to send signatures that are wrong.
func newScramHook(list string, iterations int, lie bool) *scramHook {
	users := map[string]string{}
	must(json.Unmarshal([]byte(list), &users))
	lookup, err := credentials(users, iterations)
	must(err)
	server, err := scram.SHA256.NewServer(lookup)
	must(err)
	return &scramHook{server: server, lie: lie}
}
