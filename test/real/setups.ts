/** How brokers are reached and set up for the features: plain data, for Node and for browsers. */

export const transports = ['TCP', 'TLS', 'WebSocket', 'Secure WebSocket', 'Unix socket'] as const

export type TransportName = (typeof transports)[number]

/**
 * How a broker is set up for a feature: as it comes; with narrow windows (`narrow`, see `limits`); with at most QoS 1 and nothing retained (`lesser`);
 * for one user, who may not touch `+/denied/#` (`guarded`, see `account`); with enhanced authentication of that user (`scram`); and remembering what
 * it knows from one life to the next (`durable`).
 */
export type Setup = 'plain' | 'narrow' | 'lesser' | 'guarded' | 'scram' | 'durable'

/** Who may connect when guarded. */
export const account = { username: 'user', password: 'pencil' }

/** What a narrow broker announces: Receive Maximum, Maximum Packet Size in bytes, and Server Keep Alive in seconds to who asks for more. */
export const limits = { receiveMaximum: 20, maximumPacketSize: 2000, keepAlive: 15 }
