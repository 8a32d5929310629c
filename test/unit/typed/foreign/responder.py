"""Answers requests of mqwire's `operation` from another language: the convention of docs/typed.md, with paho-mqtt 1.6 and nothing else.

    python3 responder.py HOST PORT

`jobs/{n}` answers a call with n, and a stream with the numbers below n, one at a time and never more than there is credit for.
`{"fail": code}` in the request makes it an error behind the last answer. A line on stdout says `ready`; others say how each stream ended.
"""

import json
import sys
import threading

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

CONTROL = "python/control"


def user_property(message, name):
    """The first User Property of this name, or None."""
    pairs = getattr(message.properties, "UserProperty", [])
    return next((value for key, value in pairs if key == name), None)


def reply(client, topic, payload, correlation, pairs, control=None):
    """Publishes one answer at QoS 1."""
    properties = Properties(PacketTypes.PUBLISH)
    if correlation is not None:
        properties.CorrelationData = correlation
    if control is not None:
        properties.ResponseTopic = control
    if pairs:
        properties.UserProperty = pairs
    client.publish(topic, payload, qos=1, properties=properties)


class Stream:
    """One stream of answers: a thread that waits for credit."""

    def __init__(self, client, request, asked, control):
        self.client = client
        self.topic = request.properties.ResponseTopic
        self.correlation = getattr(request.properties, "CorrelationData", None)
        self.limit = int(request.topic.split("/")[1])
        self.asked = asked
        self.control = control
        self.credit = max(1, int(user_property(request, "stream")))
        self.cancelled = False
        self.said = []
        self.changed = threading.Condition()
        threading.Thread(target=self.run, daemon=True).start()

    def hear(self, message):
        """Credit or cancel from the caller."""
        with self.changed:
            self.said.append(user_property(message, "credit") or "cancel")
            if user_property(message, "cancel") is not None:
                self.cancelled = True
            else:
                # What comes twice, or late, changes nothing.
                self.credit = max(self.credit, int(user_property(message, "credit")))
            self.changed.notify()

    def run(self):
        """Gives the answers, then the end."""
        for seq in range(self.limit):
            with self.changed:
                self.changed.wait_for(lambda: self.cancelled or seq < self.credit, timeout=30)
                if self.cancelled or seq >= self.credit:
                    return self.over("cancelled" if self.cancelled else "starved", seq)
            first = self.control if seq == 0 else None
            reply(self.client, self.topic, json.dumps(seq), self.correlation, [("seq", str(seq))], first)
        word, value, text = ("error", self.asked["fail"], "as asked") if "fail" in self.asked else ("end", "", "")
        reply(self.client, self.topic, text, self.correlation, [("seq", str(self.limit)), (word, value)])
        self.over("ended", self.limit)

    def over(self, how, given):
        """Says on stdout what became of it."""
        print(json.dumps({"how": how, "given": given, "said": self.said}), flush=True)


def main():
    """Serves until it is killed."""
    streams = {}
    client = mqtt.Client(client_id="python", protocol=mqtt.MQTTv5)

    def handle_request(_client, _userdata, message):
        topic = getattr(message.properties, "ResponseTopic", None)
        if topic is None:
            return
        asked = json.loads(message.payload)
        if user_property(message, "stream") is not None:
            control = f"{CONTROL}/{len(streams)}"
            streams[control] = Stream(client, message, asked, control)
            return
        pairs = [("error", asked["fail"])] if "fail" in asked else []
        text = "as asked" if pairs else json.dumps(int(message.topic.split("/")[1]))
        reply(client, topic, text, getattr(message.properties, "CorrelationData", None), pairs)

    def handle_control(_client, _userdata, message):
        if message.topic in streams:
            streams[message.topic].hear(message)

    client.message_callback_add("jobs/+", handle_request)
    client.message_callback_add(f"{CONTROL}/+", handle_control)
    client.on_subscribe = lambda *_: print("ready", flush=True)
    client.on_connect = lambda *_: client.subscribe([("jobs/+", SubscribeOptions(qos=1)), (f"{CONTROL}/+", SubscribeOptions(qos=1))])
    client.connect(sys.argv[1], int(sys.argv[2]), keepalive=30)
    client.loop_forever()


main()
