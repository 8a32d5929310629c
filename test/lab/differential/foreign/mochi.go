// The packets of mochi-mqtt in the words of the comparison. What a client sends is decoded and validated as its server does it; what a server sends is
// decoded, since its validation is for the packets of clients.
package main

import (
	"bytes"
	"errors"
	"fmt"

	mochi "github.com/mochi-mqtt/server/v2/packets"
)

var mochiNames = [...]string{
	"", "connect", "connack", "publish", "puback", "pubrec", "pubrel", "pubcomp", "subscribe", "suback", "unsubscribe", "unsuback", "pingreq",
	"pingresp", "disconnect", "auth",
}

func askMochi(q question) (*verdict, error) {
	packet := mochi.Packet{ProtocolVersion: q.version}
	if len(q.bytes) == 0 {
		return nil, errors.New("nothing")
	}
	if err := packet.FixedHeader.Decode(q.bytes[0]); err != nil {
		return nil, err
	}
	rest := bytes.NewReader(q.bytes[1:])
	length, _, err := mochi.DecodeLength(rest)
	if err != nil {
		return nil, err
	}
	if length > rest.Len() {
		return nil, errors.New("cut off")
	}
	if length < rest.Len() {
		return nil, errBehind
	}
	packet.FixedHeader.Remaining = length
	if err := mochiDecode(&packet, q.bytes[len(q.bytes)-length:]); err != nil {
		return nil, err
	}
	if code := mochiValidate(&packet, q.client); code.Code != 0 {
		return nil, code
	}
	v := &verdict{Fields: mochiFields(&packet)}
	if q.again {
		// As its server sets it for every packet but a CONNACK.
		packet.Mods.AllowResponseInfo = true
		v.writeWith(func(out *bytes.Buffer) error { return mochiEncode(&packet, out) })
	}
	return v, nil
}

func mochiDecode(p *mochi.Packet, body []byte) error {
	decoders := [...]func([]byte) error{
		nil, p.ConnectDecode, p.ConnackDecode, p.PublishDecode, p.PubackDecode, p.PubrecDecode, p.PubrelDecode, p.PubcompDecode, p.SubscribeDecode,
		p.SubackDecode, p.UnsubscribeDecode, p.UnsubackDecode, p.PingreqDecode, p.PingrespDecode, p.DisconnectDecode, p.AuthDecode,
	}
	decode := decoders[p.FixedHeader.Type]
	if decode == nil {
		return fmt.Errorf("invalid packet type; %v", p.FixedHeader.Type)
	}
	return decode(body)
}

func mochiEncode(p *mochi.Packet, out *bytes.Buffer) error {
	encoders := [...]func(*bytes.Buffer) error{
		nil, p.ConnectEncode, p.ConnackEncode, p.PublishEncode, p.PubackEncode, p.PubrecEncode, p.PubrelEncode, p.PubcompEncode, p.SubscribeEncode,
		p.SubackEncode, p.UnsubscribeEncode, p.UnsubackEncode, p.PingreqEncode, p.PingrespEncode, p.DisconnectEncode, p.AuthEncode,
	}
	return encoders[p.FixedHeader.Type](out)
}

func mochiValidate(p *mochi.Packet, client bool) mochi.Code {
	switch p.FixedHeader.Type {
	case mochi.Connect:
		return p.ConnectValidate()
	case mochi.Publish:
		if client {
			return p.PublishValidate(65535)
		}
	case mochi.Subscribe:
		return p.SubscribeValidate()
	case mochi.Unsubscribe:
		return p.UnsubscribeValidate()
	case mochi.Auth:
		return p.AuthValidate()
	case mochi.Pubrec, mochi.Pubrel, mochi.Pubcomp:
		if p.ProtocolVersion == 5 && !p.ReasonCodeValid() {
			return mochi.ErrProtocolViolationInvalidReason
		}
	}
	return mochi.CodeSuccess
}

func mochiFields(p *mochi.Packet) fields {
	f := fields{"type": mochiNames[p.FixedHeader.Type]}
	switch p.FixedHeader.Type {
	case mochi.Pingreq, mochi.Pingresp:
		return f
	case mochi.Connect:
		mochiConnect(p, f)
	case mochi.Connack:
		f["sessionPresent"], f["reasonCode"] = p.SessionPresent, p.ReasonCode
	case mochi.Publish:
		f["dup"], f["qos"], f["retain"] = p.FixedHeader.Dup, p.FixedHeader.Qos, p.FixedHeader.Retain
		f["topic"], f["payload"] = p.TopicName, told(p.Payload)
		if p.FixedHeader.Qos > 0 {
			f["packetId"] = p.PacketID
		}
	case mochi.Disconnect, mochi.Auth:
		f["reasonCode"] = p.ReasonCode
	case mochi.Subscribe, mochi.Unsubscribe:
		f["packetId"] = p.PacketID
		mochiFilters(p, f)
	case mochi.Suback, mochi.Unsuback:
		f["packetId"], f["reasonCodes"] = p.PacketID, numbers(p.ReasonCodes)
	default:
		f["packetId"], f["reasonCode"] = p.PacketID, p.ReasonCode
	}
	f["properties"] = mochiProperties(&p.Properties)
	return f
}

func mochiConnect(p *mochi.Packet, f fields) {
	c := &p.Connect
	f["protocolName"], f["protocolVersion"], f["cleanStart"] = string(c.ProtocolName), p.ProtocolVersion, c.Clean
	f["keepAlive"], f["clientId"] = c.Keepalive, c.ClientIdentifier
	if c.WillFlag {
		f["will"] = fields{
			"topic": c.WillTopic, "payload": told(c.WillPayload), "qos": c.WillQos, "retain": c.WillRetain,
			"properties": mochiProperties(&c.WillProperties),
		}
	}
	if c.UsernameFlag {
		f["username"] = string(c.Username)
	}
	if c.PasswordFlag {
		f["password"] = told(c.Password)
	}
}

func mochiFilters(p *mochi.Packet, f fields) {
	filters, subscriptions := []string{}, []fields{}
	for _, each := range p.Filters {
		filters = append(filters, each.Filter)
		subscriptions = append(subscriptions, fields{
			"filter": each.Filter, "qos": each.Qos, "noLocal": each.NoLocal, "retainAsPublished": each.RetainAsPublished,
			"retainHandling": each.RetainHandling,
		})
	}
	if p.FixedHeader.Type == mochi.Subscribe {
		f["subscriptions"] = subscriptions
	} else {
		f["filters"] = filters
	}
}

func setNumber[T byte | uint16 | uint32](f fields, key string, value T, present bool) {
	if present {
		f[key] = value
	}
}

// Numbers without a flag of their own are 0 where they are absent.
func mochiProperties(p *mochi.Properties) fields {
	f := fields{}
	setNumber(f, "payloadFormatIndicator", p.PayloadFormat, p.PayloadFormatFlag)
	setNumber(f, "messageExpiryInterval", p.MessageExpiryInterval, p.MessageExpiryInterval > 0)
	setNumber(f, "sessionExpiryInterval", p.SessionExpiryInterval, p.SessionExpiryIntervalFlag)
	setNumber(f, "serverKeepAlive", p.ServerKeepAlive, p.ServerKeepAliveFlag)
	setNumber(f, "requestProblemInformation", p.RequestProblemInfo, p.RequestProblemInfoFlag)
	setNumber(f, "willDelayInterval", p.WillDelayInterval, p.WillDelayInterval > 0)
	setNumber(f, "requestResponseInformation", p.RequestResponseInfo, p.RequestResponseInfo > 0)
	setNumber(f, "receiveMaximum", p.ReceiveMaximum, p.ReceiveMaximum > 0)
	setNumber(f, "topicAliasMaximum", p.TopicAliasMaximum, p.TopicAliasMaximum > 0)
	setNumber(f, "topicAlias", p.TopicAlias, p.TopicAliasFlag)
	setNumber(f, "maximumQoS", p.MaximumQos, p.MaximumQosFlag)
	setNumber(f, "retainAvailable", p.RetainAvailable, p.RetainAvailableFlag)
	setNumber(f, "maximumPacketSize", p.MaximumPacketSize, p.MaximumPacketSize > 0)
	setNumber(f, "wildcardSubscriptionAvailable", p.WildcardSubAvailable, p.WildcardSubAvailableFlag)
	setNumber(f, "subscriptionIdentifierAvailable", p.SubIDAvailable, p.SubIDAvailableFlag)
	setNumber(f, "sharedSubscriptionAvailable", p.SharedSubAvailable, p.SharedSubAvailableFlag)
	if p.SubscriptionIdentifier != nil {
		f["subscriptionIdentifiers"] = p.SubscriptionIdentifier
	}
	setText(f, "contentType", p.ContentType)
	setText(f, "responseTopic", p.ResponseTopic)
	setText(f, "assignedClientIdentifier", p.AssignedClientID)
	setText(f, "authenticationMethod", p.AuthenticationMethod)
	setText(f, "responseInformation", p.ResponseInfo)
	setText(f, "serverReference", p.ServerReference)
	setText(f, "reasonString", p.ReasonString)
	setBytes(f, "correlationData", p.CorrelationData)
	setBytes(f, "authenticationData", p.AuthenticationData)
	var pairs [][2]string
	for _, each := range p.User {
		pairs = append(pairs, [2]string{each.Key, each.Val})
	}
	if pairs != nil {
		f["userProperties"] = pairs
	}
	return f
}
