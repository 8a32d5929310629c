// The packets of paho.golang in the words of the comparison. It speaks MQTT 5.0 only.
package main

import (
	"bytes"

	paho "github.com/eclipse/paho.golang/packets"
)

// It takes the memory that a packet announces before the bytes are there: it is not asked where many are missing.
const mostMissing = 10_000

func askPaho(q question) (*verdict, error) {
	announced, _ := remaining(q.bytes)
	if q.version != 5 || announced > uint64(len(q.bytes)+mostMissing) {
		return nil, nil
	}
	reader := bytes.NewReader(q.bytes)
	packet, err := paho.ReadPacket(reader)
	if err != nil {
		return nil, err
	}
	if reader.Len() > 0 {
		return nil, errBehind
	}
	v := &verdict{Fields: pahoFields(packet)}
	if q.again {
		v.writeWith(func(out *bytes.Buffer) error {
			_, err := packet.WriteTo(out)
			return err
		})
	}
	return v, nil
}

func pahoFields(packet *paho.ControlPacket) fields {
	switch p := packet.Content.(type) {
	case *paho.Connect:
		return pahoConnect(p)
	case *paho.Connack:
		return fields{"type": "connack", "sessionPresent": p.SessionPresent, "reasonCode": p.ReasonCode, "properties": pahoProperties(p.Properties)}
	case *paho.Publish:
		return pahoPublish(p)
	case *paho.Puback:
		return pahoAnswer("puback", p.PacketID, p.ReasonCode, p.Properties)
	case *paho.Pubrec:
		return pahoAnswer("pubrec", p.PacketID, p.ReasonCode, p.Properties)
	case *paho.Pubrel:
		return pahoAnswer("pubrel", p.PacketID, p.ReasonCode, p.Properties)
	case *paho.Pubcomp:
		return pahoAnswer("pubcomp", p.PacketID, p.ReasonCode, p.Properties)
	case *paho.Subscribe:
		return pahoSubscribe(p)
	case *paho.Suback:
		return fields{"type": "suback", "packetId": p.PacketID, "reasonCodes": numbers(p.Reasons), "properties": pahoProperties(p.Properties)}
	case *paho.Unsubscribe:
		return fields{"type": "unsubscribe", "packetId": p.PacketID, "filters": append([]string{}, p.Topics...), "properties": pahoProperties(p.Properties)}
	case *paho.Unsuback:
		return fields{"type": "unsuback", "packetId": p.PacketID, "reasonCodes": numbers(p.Reasons), "properties": pahoProperties(p.Properties)}
	case *paho.Pingreq:
		return fields{"type": "pingreq"}
	case *paho.Pingresp:
		return fields{"type": "pingresp"}
	case *paho.Disconnect:
		return fields{"type": "disconnect", "reasonCode": p.ReasonCode, "properties": pahoProperties(p.Properties)}
	case *paho.Auth:
		return fields{"type": "auth", "reasonCode": p.ReasonCode, "properties": pahoProperties(p.Properties)}
	}
	return fields{"type": "unknown"}
}

func pahoConnect(p *paho.Connect) fields {
	f := fields{
		"type": "connect", "protocolName": p.ProtocolName, "protocolVersion": p.ProtocolVersion, "cleanStart": p.CleanStart,
		"keepAlive": p.KeepAlive, "clientId": p.ClientID, "properties": pahoProperties(p.Properties),
	}
	if p.WillFlag {
		f["will"] = fields{
			"topic": p.WillTopic, "payload": told(p.WillMessage), "qos": p.WillQOS, "retain": p.WillRetain,
			"properties": pahoProperties(p.WillProperties),
		}
	}
	if p.UsernameFlag {
		f["username"] = p.Username
	}
	if p.PasswordFlag {
		f["password"] = told(p.Password)
	}
	return f
}

func pahoPublish(p *paho.Publish) fields {
	f := fields{
		"type": "publish", "dup": p.Duplicate, "qos": p.QoS, "retain": p.Retain, "topic": p.Topic, "payload": told(p.Payload),
		"properties": pahoProperties(p.Properties),
	}
	if p.QoS > 0 {
		f["packetId"] = p.PacketID
	}
	return f
}

func pahoAnswer(name string, id uint16, code byte, properties *paho.Properties) fields {
	return fields{"type": name, "packetId": id, "reasonCode": code, "properties": pahoProperties(properties)}
}

func pahoSubscribe(p *paho.Subscribe) fields {
	list := []fields{}
	for _, each := range p.Subscriptions {
		list = append(list, fields{
			"filter": each.Topic, "qos": each.QoS, "noLocal": each.NoLocal, "retainAsPublished": each.RetainAsPublished,
			"retainHandling": each.RetainHandling,
		})
	}
	return fields{"type": "subscribe", "packetId": p.PacketID, "subscriptions": list, "properties": pahoProperties(p.Properties)}
}

func set[T any](f fields, key string, value *T) {
	if value != nil {
		f[key] = *value
	}
}

func pahoProperties(p *paho.Properties) fields {
	f := fields{}
	set(f, "payloadFormatIndicator", p.PayloadFormat)
	set(f, "messageExpiryInterval", p.MessageExpiry)
	set(f, "sessionExpiryInterval", p.SessionExpiryInterval)
	set(f, "serverKeepAlive", p.ServerKeepAlive)
	set(f, "requestProblemInformation", p.RequestProblemInfo)
	set(f, "willDelayInterval", p.WillDelayInterval)
	set(f, "requestResponseInformation", p.RequestResponseInfo)
	set(f, "receiveMaximum", p.ReceiveMaximum)
	set(f, "topicAliasMaximum", p.TopicAliasMaximum)
	set(f, "topicAlias", p.TopicAlias)
	set(f, "maximumQoS", p.MaximumQOS)
	set(f, "retainAvailable", p.RetainAvailable)
	set(f, "maximumPacketSize", p.MaximumPacketSize)
	set(f, "wildcardSubscriptionAvailable", p.WildcardSubAvailable)
	set(f, "subscriptionIdentifierAvailable", p.SubIDAvailable)
	set(f, "sharedSubscriptionAvailable", p.SharedSubAvailable)
	if p.SubscriptionIdentifier != nil {
		f["subscriptionIdentifiers"] = []int{*p.SubscriptionIdentifier}
	}
	setText(f, "contentType", p.ContentType)
	setText(f, "responseTopic", p.ResponseTopic)
	setText(f, "assignedClientIdentifier", p.AssignedClientID)
	setText(f, "authenticationMethod", p.AuthMethod)
	setText(f, "responseInformation", p.ResponseInfo)
	setText(f, "serverReference", p.ServerReference)
	setText(f, "reasonString", p.ReasonString)
	setBytes(f, "correlationData", p.CorrelationData)
	setBytes(f, "authenticationData", p.AuthData)
	var pairs [][2]string
	for _, each := range p.User {
		pairs = append(pairs, [2]string{each.Key, each.Value})
	}
	if pairs != nil {
		f["userProperties"] = pairs
	}
	return f
}
