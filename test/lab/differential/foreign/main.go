// Reads MQTT packets on standard input and says on standard output what two foreign codecs make of each: paho.golang and mochi-mqtt.
//
// A request is a batch: the number of packets in four bytes, then for each the protocol version, a byte of flags (1: a client sent it, 2: write it
// again), the length in four bytes and the packet. The answer is a length in four bytes and text, a line of JSON for each packet: an array with the
// verdict of paho.golang and that of mochi-mqtt. A verdict is null where the codec was not asked. Numbers are big endian.
//
// It must never judge: what is right is decided elsewhere. A codec that panics has refused the packet.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	fromClient = 1
	writeAgain = 2
	// A field of more bytes is told by its length and its hash.
	longest = 64
)

type fields = map[string]any

// What a codec makes of a packet.
type verdict struct {
	Error  string `json:"error,omitempty"`
	Fields fields `json:"fields,omitempty"`
	Again  string `json:"again,omitempty"`
	Writes string `json:"writes,omitempty"`
}

type question struct {
	bytes   []byte
	version byte
	client  bool
	again   bool
}

var errBehind = errors.New("bytes after the packet")

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		err := answerBatch(in, out)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func answerBatch(in *bufio.Reader, out *bufio.Writer) error {
	var count uint32
	if err := binary.Read(in, binary.BigEndian, &count); err != nil {
		return err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for range count {
		q, err := readQuestion(in)
		if err != nil {
			return err
		}
		if err := encoder.Encode([]*verdict{ask(q, askPaho), ask(q, askMochi)}); err != nil {
			return err
		}
	}
	if err := binary.Write(out, binary.BigEndian, uint32(text.Len())); err != nil {
		return err
	}
	if _, err := text.WriteTo(out); err != nil {
		return err
	}
	return out.Flush()
}

func readQuestion(in *bufio.Reader) (question, error) {
	var head [6]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return question{}, err
	}
	packet := make([]byte, binary.BigEndian.Uint32(head[2:]))
	_, err := io.ReadFull(in, packet)
	return question{bytes: packet, version: head[0], client: head[1]&fromClient != 0, again: head[1]&writeAgain != 0}, err
}

// One verdict; nil where the codec is not to be asked.
func ask(q question, codec func(question) (*verdict, error)) (v *verdict) {
	defer func() {
		if reason := recover(); reason != nil {
			v = &verdict{Error: fmt.Sprint("panic: ", reason)}
		}
	}()
	v, err := codec(q)
	if err != nil {
		return &verdict{Error: err.Error()}
	}
	return v
}

// Adds what a codec writes of the packet that it read.
func (v *verdict) writeWith(write func(*bytes.Buffer) error) {
	var written bytes.Buffer
	if err := write(&written); err != nil {
		v.Writes = err.Error()
		return
	}
	v.Again = hex.EncodeToString(written.Bytes())
}

// Bytes as text.
func told(data []byte) string {
	if len(data) <= longest {
		return hex.EncodeToString(data)
	}
	hash := sha256.Sum256(data)
	return fmt.Sprintf("%d:%s", len(data), hex.EncodeToString(hash[:]))
}

// Numbers of bytes, which JSON would else give as text.
func numbers(data []byte) []int {
	list := make([]int, len(data))
	for i, b := range data {
		list[i] = int(b)
	}
	return list
}

func setText(f fields, key, value string) {
	if value != "" {
		f[key] = value
	}
}

func setBytes(f fields, key string, value []byte) {
	if len(value) > 0 {
		f[key] = told(value)
	}
}

// The bytes of the Remaining Length, and what it is; false where it is not to be had.
func remaining(packet []byte) (value uint64, ok bool) {
	for i, b := range packet[min(1, len(packet)):] {
		if i > 8 {
			return 0, false
		}
		value |= uint64(b&127) << (7 * i)
		if b < 128 {
			return value, true
		}
	}
	return 0, false
}
