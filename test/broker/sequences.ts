/**
 * A hundred sequences of packets over TCP: what goes in on each of several connections, and what has to come out, in a line each.
 *
 * A sequence is a text. Its steps are separated by `;`. A step is a connection and what happens on it:
 *
 *     a> packet packet     sends them in one write
 *     a< packet packet     these come next, and nothing else has come before them
 *     a.                   the broker has ended the stream
 *     a!                   cuts the stream
 *     a_                   nothing came
 *
 * A connection is made by its first step. Packets are in short: see `packetOf` in sequences.test.ts. `5` and `4` say on which versions a sequence is
 * played.
 */

/** One sequence. */
export interface Sequence {
  readonly name: string
  readonly versions: readonly (4 | 5)[]
  readonly steps: string
}

const both = [5, 4] as const
const five = [5] as const
const four = [4] as const

const row = (versions: readonly (4 | 5)[], name: string, steps: string): Sequence => ({ versions, name, steps })

/** All of them. */
export const sequences: readonly Sequence[] = [
  // CONNECT, CONNACK, the end
  row(both, 'CONNECT is answered by CONNACK', 'a> C:a; a< K:0'),
  row(both, 'a PUBLISH before CONNECT ends the stream', 'a> P:t=x; a.'),
  row(both, 'a second CONNECT ends the stream', 'a> C:a; a< K:0; a> C:a; a<? D:82; a.'),
  row(both, 'DISCONNECT ends the stream', 'a> C:a; a< K:0; a> D; a.'),
  row(both, 'what follows DISCONNECT is not handled', 'b> C:b S:1:#:0; b< K:0 SA:1:0; a> C:a; a< K:0; a> D P:t=x; a.; b_'),
  row(both, 'the same client identifier takes over', 'a> C:a; a< K:0; b> C:a; b< K:0; a<? D:8e; a.'),
  row(both, 'PINGREQ is answered', 'a> C:a Q Q; a< K:0 R R'),
  row(both, 'PINGREQ is answered each time', 'a> C:a; a< K:0; a> Q; a< R; a> Q; a< R'),
  row(both, 'who has not subscribed gets no copy', 'a> C:a P:t=x Q; a< K:0 R'),
  row(both, 'a packet that only servers send ends the stream', 'a> C:a; a< K:0; a> K:0; a<? D:82; a.'),
  row(five, 'an empty client identifier is replaced', 'a> C: Q; a< K:0 R'),
  row(four, 'an empty client identifier with a clean session is welcome', 'a> C: Q; a< K:0 R'),
  row(both, 'CONNECT and everything behind it in one write', 'a> C:a S:1:t:0 P:t=x Q; a< K:0 SA:1:0 P:t=x R'),

  // PUBLISH to oneself and to others
  row(both, 'QoS 0 to oneself', 'a> C:a S:1:t:0 P:t=x; a< K:0 SA:1:0 P:t=x'),
  row(both, 'QoS 1 is acknowledged', 'a> C:a P1:7:t=x; a< K:0 PA:7:n'),
  row(both, 'QoS 2 goes in four steps', 'a> C:a P2:7:t=x; a< K:0 PR:7:n; a> PL:7; a< PC:7'),
  row(both, 'QoS 0 to another', 'b> C:b S:1:t:2; b< K:0 SA:1:2; a> C:a P:t=x; a< K:0; b< P:t=x'),
  row(both, 'QoS 1 to another', 'b> C:b S:1:t:2; b< K:0 SA:1:2; a> C:a P1:9:t=x; a< K:0 PA:9; b< P1:1:t=x; b> PA:1; b_'),
  row(
    both,
    'QoS 2 to another',
    'b> C:b S:1:t:2; b< K:0 SA:1:2; a> C:a P2:9:t=x; a< K:0 PR:9; a> PL:9; a< PC:9; b< P2:1:t=x; b> PR:1; b< PL:1; b> PC:1; b_',
  ),
  row(both, 'QoS 2 is granted as 1', 'b> C:b S:1:t:1; b< K:0 SA:1:1; a> C:a P2:9:t=x; a< K:0 PR:9; b< P1:1:t=x'),
  row(both, 'QoS 1 is granted as 0', 'b> C:b S:1:t:0; b< K:0 SA:1:0; a> C:a P1:9:t=x; a< K:0 PA:9; b< P:t=x'),
  row(both, 'an empty payload is a message', 'a> C:a S:1:t:0 P:t=; a< K:0 SA:1:0 P:t='),
  row(both, 'order within a topic', 'a> C:a S:1:t:0 P:t=1 P:t=2 P:t=3; a< K:0 SA:1:0 P:t=1 P:t=2 P:t=3'),
  row(both, 'order of acknowledgements', 'a> C:a P1:3:t=1 P1:1:t=2 P1:2:t=3; a< K:0 PA:3:n PA:1:n PA:2:n'),
  row(both, 'order of PUBREC and PUBCOMP', 'a> C:a P2:3:t=1 P2:1:t=2; a< K:0 PR:3:n PR:1:n; a> PL:3 PL:1; a< PC:3 PC:1'),
  row(
    both,
    'a message is delivered when PUBREC leaves, and not again',
    'b> C:b S:1:t:0; b< K:0 SA:1:0; a> C:a P2:9:t=x; a< K:0 PR:9; b< P:t=x; a> P2+:9:t=x; a< PR:9; b_; a> PL:9; a< PC:9; b_',
  ),
  row(both, 'after PUBCOMP the identifier is free', 'a> C:a P2:9:t=x; a< K:0 PR:9:n; a> PL:9; a< PC:9; a> P2:9:t=y; a< PR:9:n'),
  row(both, 'PUBREL for nothing is answered', 'a> C:a PL:5; a< K:0 PC:5:92'),
  row(both, 'a topic with a wildcard ends the stream', 'a> C:a; a< K:0; a> hex:30040001232a; a<? D:82; a.'),
  row(both, 'QoS 3 ends the stream', 'a> C:a; a< K:0; a> hex:3606000174000100; a<? D:81; a.'),
  row(both, 'packet identifier 0 ends the stream', 'a> C:a; a< K:0; a> hex:3206000174000000; a<? D:82; a.'),
  row(five, 'DUP at QoS 0 ends the stream', 'a> C:a; a< K:0; a> hex:380400017400; a<? D:81; a.'),
  row(four, 'DUP at QoS 0 ends the stream', 'a> C:a; a< K:0; a> hex:3803000174; a.'),
  row(four, 'the wrong acknowledgement ends the stream', 'a> C:a S:1:t:1 P1:1:t=x; a< K:0 SA:1:1 P1:1:t=x PA:1; a> PR:1; a.'),

  // SUBSCRIBE and UNSUBSCRIBE
  row(both, 'several filters are answered in order', 'a> C:a S:9:a:0,b:1,c:2; a< K:0 SA:9:0,1,2'),
  row(both, 'a filter that is subscribed again has the new QoS', 'a> C:a S:1:t:0 S:2:t:1 P1:3:t=x; a< K:0 SA:1:0 SA:2:1 P1:1:t=x PA:3'),
  row(both, 'UNSUBSCRIBE ends a subscription', 'a> C:a S:1:t:0 U:2:t P:t=x Q; a< K:0 SA:1:0 UA:2:0 R'),
  row(both, 'UNSUBSCRIBE of what is not there is answered', 'a> C:a U:2:t,u; a< K:0 UA:2:11,11'),
  row(both, 'SUBSCRIBE without a filter ends the stream', 'a> C:a; a< K:0; a> S:1:; a<? D:82; a.'),
  row(both, 'UNSUBSCRIBE without a filter ends the stream', 'a> C:a; a< K:0; a> U:1:; a<? D:82; a.'),
  row(both, 'overlapping filters bring one copy, at the highest QoS', 'a> C:a S:1:t:0,#:1 P1:2:t=x Q; a< K:0 SA:1:0,1 P1:1:t=x PA:2 R'),
  row(both, 'one level', 'a> C:a S:1:+:0 P:a=1 P:a/b=2 P:/a=3; a< K:0 SA:1:0 P:a=1'),
  row(both, 'a level in the middle', 'a> C:a S:1:a/+/c:0 P:a/b/c=1 P:a//c=2 P:a/b=3 P:a/b/c/d=4; a< K:0 SA:1:0 P:a/b/c=1 P:a//c=2'),
  row(both, 'all levels below, and the parent', 'a> C:a S:1:a/#:0 P:a=1 P:a/b=2 P:a/b/c=3 P:b=4; a< K:0 SA:1:0 P:a=1 P:a/b=2 P:a/b/c=3'),
  row(both, 'topics are told apart by case and by slashes', 'a> C:a S:1:A/b:0 P:a/b=1 P:A/b/=2 P:/A/b=3 P:A/b=4; a< K:0 SA:1:0 P:A/b=4'),
  row(both, '# and + do not match $', 'a> C:a S:1:#:0,+/x:0 P:$a=1 P:$a/x=2 P:b=3; a< K:0 SA:1:0,0 P:b=3'),
  row(both, '$ is matched by its name', 'a> C:a S:1:$a/#:0 P:$a/x=2; a< K:0 SA:1:0 P:$a/x=2'),
  row(both, 'a wildcard inside a level ends the stream', 'a> C:a; a< K:0; a> S:1:a+:0; a<? D:82; a.'),
  row(both, '# before the end ends the stream', 'a> C:a; a< K:0; a> S:1:#/a:0; a<? D:82; a.'),
  row(
    five,
    'shared subscriptions take turns',
    'a> C:a S:1:$share/g/t:0; a< K:0 SA:1:0; b> C:b S:1:$share/g/t:0; b< K:0 SA:1:0; c> C:c P:t=1 P:t=2 P:t=3 P:t=4; c< K:0; a< P:t=1 P:t=3; b< P:t=2 P:t=4',
  ),
  row(five, 'a share without a name ends the stream', 'a> C:a; a< K:0; a> S:1:$share//t:0; a<? D:82; a.'),

  // Retained messages
  row(both, 'a retained message comes at SUBSCRIBE', 'a> C:a PX:t=x Q; a< K:0 R; b> C:b S:1:t:0; b< K:0 SA:1:0 PX:t=x'),
  row(both, 'to those who are there it comes without the flag', 'b> C:b S:1:t:0; b< K:0 SA:1:0; a> C:a PX:t=x; a< K:0; b< P:t=x'),
  row(both, 'the newest one is kept', 'a> C:a PX:t=1 PX:t=2 P:t=3 Q; a< K:0 R; b> C:b S:1:#:0; b< K:0 SA:1:0 PX:t=2'),
  row(both, 'an empty one clears the topic', 'a> C:a PX:t=1 PX:t= Q; a< K:0 R; b> C:b S:1:#:0 Q; b< K:0 SA:1:0 R'),
  row(both, 'several come for a wildcard', 'a> C:a PX:a/1=1 PX:a/2=2 PX:b=3 Q; a< K:0 R; b> C:b S:1:a/+:0 Q; b< K:0 SA:1:0 PX:a/1=1 PX:a/2=2 R'),
  row(both, 'at SUBSCRIBE again, again', 'a> C:a PX:t=x S:1:t:0 S:2:t:0; a< K:0 SA:1:0 PX:t=x SA:2:0 PX:t=x'),
  row(both, 'at the lower QoS', 'a> C:a PX1:3:t=x S:1:t:0 S:2:t:2; a< K:0 PA:3:n SA:1:0 PX:t=x SA:2:2 PX1:1:t=x'),
  row(both, '$ topics do not come for #', 'a> C:a PX:$a=x PX:b=y Q; a< K:0 R; b> C:b S:1:#:0 Q; b< K:0 SA:1:0 PX:b=y R'),
  row(five, 'Retain Handling 2: none', 'a> C:a PX:t=x S:1:t:0h2 Q; a< K:0 SA:1:0 R'),
  row(five, 'Retain Handling 1: only for a new one', 'a> C:a PX:t=x S:1:t:0h1 S:2:t:0h1 Q; a< K:0 SA:1:0 PX:t=x SA:2:0 R'),
  row(five, 'Retain As Published', 'a> C:a S:1:t:0r PX:t=x P:t=y; a< K:0 SA:1:0 PX:t=x P:t=y'),
  row(five, 'No Local', 'a> C:a S:1:t:0n P:t=x Q; a< K:0 SA:1:0 R; b> C:b P:t=y; b< K:0; a< P:t=y'),
  row(five, 'none comes for a share', 'a> C:a PX:t=x S:1:$share/g/t:0 Q; a< K:0 SA:1:0 R'),

  // Sessions
  row(both, 'a clean session has no subscriptions', 'a> C:a S:1:t:0 D; a< K:0 SA:1:0; a.; b> C:a P:t=x Q; b< K:0 R'),
  row(both, 'a session keeps its subscriptions', 'a> C:a~ S:1:t:0; a< K:0 SA:1:0; a!; b> C:a~ P:t=x; b< K:1 P:t=x'),
  row(both, 'a session keeps messages at QoS 1', 'a> C:a~ S:1:t:1; a< K:0 SA:1:1; a!; b> C:b P1:5:t=x; b< K:0 PA:5; c> C:a~; c< K:1 P1:1:t=x'),
  row(both, 'a session keeps messages at QoS 2', 'a> C:a~ S:1:t:2; a< K:0 SA:1:2; a!; b> C:b P2:5:t=x; b< K:0 PR:5; c> C:a~; c< K:1 P2:1:t=x'),
  row(both, 'messages at QoS 0 do not wait', 'a> C:a~ S:1:t:2; a< K:0 SA:1:2; a!; b> C:b P:t=x Q; b< K:0 R; c> C:a~ Q; c< K:1 R'),
  row(
    both,
    'what was not acknowledged comes again with DUP',
    'a> C:a~ S:1:t:1 P1:5:t=x; a< K:0 SA:1:1 P1:1:t=x PA:5; a!; b> C:a~; b< K:1 P1+:1:t=x; b> PA:1; b!; c> C:a~ Q; c< K:1 R',
  ),
  row(
    both,
    'PUBREL comes again',
    'a> C:a~ S:1:t:2 P1:5:t=x; a< K:0 SA:1:2 P1:1:t=x PA:5; a> PA:1 P2:6:t=y; a< P2:2:t=y PR:6; a> PR:2; a< PL:2; a!; b> C:a~; b< K:1 PL:2; b> PC:2; b!; c> C:a~ Q; c< K:1 R',
  ),
  row(
    both,
    'a QoS 2 message from the client is not taken twice',
    'z> C:z S:1:t:0; z< K:0 SA:1:0; a> C:a~ P2:5:t=x; a< K:0 PR:5; z< P:t=x; a!; b> C:a~ P2+:5:t=x; b< K:1 PR:5; b> PL:5; b< PC:5; z_',
  ),
  row(both, 'clean start forgets the session', 'a> C:a~ S:1:t:1; a< K:0 SA:1:1; a!; b> C:a; b< K:0; b!; c> C:a~ P:t=x Q; c< K:0 R'),
  row(both, 'a takeover keeps the session', 'a> C:a~ S:1:t:0; a< K:0 SA:1:0; b> C:a~ P:t=x; b< K:1 P:t=x; a<? D:8e; a.'),
  row(five, 'without an expiry the session ends with the connection', 'a> C:a S:1:t:1; a< K:0 SA:1:1; a!; b> C:a*; b< K:0'),
  row(five, 'DISCONNECT may shorten the session', 'a> C:a~ S:1:t:1 D0; a< K:0 SA:1:1; a.; b> C:a~; b< K:0'),
  row(
    both,
    'several messages wait in order',
    'a> C:a~ S:1:t:1; a< K:0 SA:1:1; a!; b> C:b P1:1:t=1 P1:2:t=2 P1:3:t=3; b< K:0 PA:1 PA:2 PA:3; c> C:a~; c< K:1 P1:1:t=1 P1:2:t=2 P1:3:t=3',
  ),
  row(both, 'UNSUBSCRIBE holds in the session', 'a> C:a~ S:1:t:1 U:2:t; a< K:0 SA:1:1 UA:2:0; a!; b> C:a~ P:t=x Q; b< K:1 R'),

  // Wills
  row(both, 'a will comes when the stream is cut', 'b> C:b S:1:w:0; b< K:0 SA:1:0; a> C:a!w=gone; a< K:0; a!; b< P:w=gone'),
  row(both, 'a will does not come after DISCONNECT', 'b> C:b S:1:w:0; b< K:0 SA:1:0; a> C:a!w=gone; a< K:0; a> D; a.; b_'),
  row(five, 'a will comes after DISCONNECT 0x04', 'b> C:b S:1:w:0; b< K:0 SA:1:0; a> C:a!w=gone; a< K:0; a> D4; a.; b< P:w=gone'),
  row(both, 'a will comes after a broken rule', 'b> C:b S:1:w:0; b< K:0 SA:1:0; a> C:a!w=gone; a< K:0; a> C:a; a<? D:82; a.; b< P:w=gone'),
  row(both, 'a will comes at a takeover', 'b> C:b S:1:w:0; b< K:0 SA:1:0; a> C:a!w=gone; a< K:0; c> C:a; c< K:0; b< P:w=gone'),
  row(both, 'a will may be retained', 'a> C:a!!w=gone; a< K:0; a!; b> C:b Q; b< K:0 R; b> S:1:w:0; b< SA:1:0 PX:w=gone'),

  // Flow control, limits and properties
  row(five, 'Receive Maximum 1: one at a time', 'a> C:a%1 S:1:t:1 P1:5:t=1 P1:6:t=2; a< K:0 SA:1:1 P1:1:t=1 PA:5 PA:6; a_; a> PA:1; a< P1:2:t=2'),
  row(
    five,
    'Receive Maximum counts until PUBCOMP',
    'a> C:a%1 S:1:t:2 P2:5:t=1 P2:6:t=2; a< K:0 SA:1:2 P2:1:t=1 PR:5 PR:6; a> PR:1; a< PL:1; a_; a> PC:1; a< P2:2:t=2',
  ),
  row(five, 'QoS 0 passes a full window', 'a> C:a%1 S:1:#:1 P1:5:t=1 P1:6:t=2 P:u=0; a< K:0 SA:1:1 P1:1:t=1 PA:5 PA:6 P:u=0'),
  row(five, 'a refusing PUBREC frees the place', 'a> C:a%1 S:1:t:2 P2:5:t=1 P2:6:t=2; a< K:0 SA:1:2 P2:1:t=1 PR:5 PR:6; a> PR:1:80; a< P2:2:t=2'),
  row(five, 'Maximum Packet Size: a larger one is left out', 'a> C:a^30 S:1:t:0 P:t=0123456789012345678901234567890 P:t=x; a< K:0 SA:1:0 P:t=x'),
  row(five, 'an alias stands for its topic', 'a> C:a S:1:#:0 PT1:t=1 PT1:=2; a< K:0 SA:1:0 P:t=1 P:t=2'),
  row(five, 'an alias is given another topic', 'a> C:a S:1:#:0 PT1:t=1 PT1:u=2 PT1:=3; a< K:0 SA:1:0 P:t=1 P:u=2 P:u=3'),
  row(five, 'an alias above the maximum ends the stream', 'a> C:a; a< K:0; a> PT11:t=1; a<? D:94; a.'),
  row(five, 'an alias without a topic ends the stream', 'a> C:a; a< K:0; a> PT1:=1; a<? D:82; a.'),
  row(five, 'AUTH without a method ends the stream', 'a> C:a; a< K:0; a> hex:f00118; a<? D:82; a.'),
  row(five, 'a Subscription Identifier comes with the message', 'a> C:a S9:1:t:0 P:t=x; a< K:0 SA:1:0 P@9:t=x'),
  row(five, 'a new SUBSCRIBE replaces the identifier', 'a> C:a S9:1:t:0 S10:2:t:0 P:t=x; a< K:0 SA:1:0 SA:2:0 P@10:t=x'),

  // Streams in pieces
  row(both, 'one byte at a time', 'a> slow C:a S:1:t:1 P1:5:t=x Q D; a< K:0 SA:1:1 P1:1:t=x PA:5 R; a.'),
  row(both, 'half a packet and the end: nothing of it', 'b> C:b S:1:#:0; b< K:0 SA:1:0; a> C:a hex:3010000174; a< K:0; a!; b_'),
  row(both, 'good packets before a bad one are handled', 'b> C:b S:1:#:0; b< K:0 SA:1:0; a> C:a P:t=x hex:c100; a< K:0; a<? D:81; a.; b< P:t=x'),
  row(both, 'a thousand packets in one write', 'a> C:a many; a< K:0 manyback'),
]
