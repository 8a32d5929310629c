/** Why a connection ends: every rule that a sequence of the corpus breaks, with the reason code of our DISCONNECT and where the rule stands. */

export interface Rule {
  readonly code: 0x81 | 0x82 | 0x93 | 0x94 | 0x95 | 0x97
  readonly source: string
}

const rule = (code: Rule['code'], source: string): Rule => ({ code, source })

export const rules = {
  // The fixed header
  'reserved packet type': rule(0x81, 'section 2.1.2'),
  'AUTH on 3.1.1': rule(0x81, 'section 2.2.1 of 3.1.1'),
  'flags of the fixed header': rule(0x81, '[MQTT-2.1.3-1]'),
  'QoS 3': rule(0x81, '[MQTT-3.3.1-4]'),
  'DUP at QoS 0': rule(0x81, '[MQTT-3.3.1-2], code by decision'),
  'Remaining Length of five bytes': rule(0x81, 'section 1.5.5'),
  'Remaining Length not minimal': rule(0x81, '[MQTT-1.5.5-1]'),
  'packet that only a client sends': rule(0x82, 'section 2.1.2'),
  'DISCONNECT from a server on 3.1.1': rule(0x82, 'section 3.14 of 3.1.1'),
  'packet above our Maximum Packet Size': rule(0x95, '[MQTT-3.1.2-24]'),
  'packet above what its kind needs': rule(0x95, 'a limit of this client'),
  // The body
  'body ends inside a field': rule(0x81, 'section 4.13'),
  'bytes behind the last field': rule(0x81, 'section 4.13'),
  'Property Length beyond the packet': rule(0x81, 'section 2.2.2.1'),
  'Property Length not minimal': rule(0x81, '[MQTT-1.5.5-1]'),
  'Property Length of five bytes': rule(0x81, 'section 1.5.5'),
  'property cut off': rule(0x81, 'section 2.2.2.2'),
  'unknown property': rule(0x81, 'section 2.2.2.2'),
  'property of another packet': rule(0x81, 'section 2.2.2.2, code by decision'),
  'property of the client': rule(0x82, '[MQTT-3.14.2-2]'),
  'property repeated': rule(0x82, 'section 2.2.2.2'),
  'flag neither 0 nor 1': rule(0x82, 'code by decision for the Payload Format Indicator'),
  'zero where it is forbidden': rule(0x82, 'sections 3.2.2.3.3, 3.2.2.3.6, 3.3.2.3.8'),
  'Subscription Identifier not minimal': rule(0x81, '[MQTT-1.5.5-1]'),
  'Subscription Identifier of five bytes': rule(0x81, 'section 1.5.5'),
  'string ill-formed': rule(0x81, '[MQTT-1.5.4-1] [MQTT-1.5.4-2]'),
  'string beyond its block': rule(0x81, 'section 1.5.4'),
  'reason code of no or another packet': rule(0x82, 'section 2.4, code by decision'),
  'return code unknown on 3.1.1': rule(0x81, '[MQTT-3.9.3-2] of 3.1.1'),
  'no reason codes': rule(0x82, 'sections 3.9.3, 3.11.3, code by decision'),
  'packet identifier 0': rule(0x82, '[MQTT-2.2.1-4]'),
  'flags of CONNACK': rule(0x81, '[MQTT-3.2.2-1]'),
  'Session Present in a refusal': rule(0x82, '[MQTT-3.2.2-6]'),
  'topic with a wildcard': rule(0x82, '[MQTT-3.3.2-2], code by decision'),
  'topic empty without an alias': rule(0x82, '[MQTT-4.7.3-1], code by decision'),
  'response topic that is no topic name': rule(0x82, '[MQTT-3.3.2-14]'),
  'AUTH without a method': rule(0x82, 'section 3.15.2.2.2'),
  // Counts
  'more user properties than we take': rule(0x97, 'a limit of this client'),
  'more subscription identifiers than we take': rule(0x97, 'a limit of this client'),
  // The state of the connection
  'packet before CONNACK': rule(0x82, '[MQTT-3.2.0-1]'),
  'second CONNACK': rule(0x82, '[MQTT-3.2.0-2]'),
  'Session Present without a session': rule(0x82, '[MQTT-3.2.2-4]'),
  'client identifier assigned unasked': rule(0x82, 'section 3.2.2.3.7'),
  'another authentication method': rule(0x82, '[MQTT-4.12.0-5]'),
  'AUTH where none is expected': rule(0x82, '[MQTT-4.12.0-6]'),
  'too many rounds of authentication': rule(0x82, 'a limit of this client'),
  'topic alias outside our range': rule(0x94, '[MQTT-3.3.2-8] [MQTT-3.3.2-11]'),
  'topic alias never set': rule(0x82, 'section 3.3.2.3.4'),
  'above our Receive Maximum': rule(0x93, '[MQTT-3.3.4-9]'),
  'packet identifier in use': rule(0x82, '[MQTT-2.2.1-4]'),
  'PUBREL before our PUBREC': rule(0x82, 'section 4.3.3'),
  'acknowledgement of the wrong kind': rule(0x82, 'section 4.3'),
  'another number of reason codes than filters': rule(0x82, '[MQTT-3.8.4-6]'),
} as const satisfies Record<string, Rule>

export type RuleName = keyof typeof rules
