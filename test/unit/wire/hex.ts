/** Packets written out in hexadecimal, and what the decoder says of them. */
import { decode, type WireError } from '../../../src/wire/index.js'

export type Sender = 'client' | 'server'
export type Version = 4 | 5

export const senders = ['client', 'server'] as const
export const hexOf = (bytes: Uint8Array | number[]): string => Buffer.from(bytes).toString('hex')
export const uint = (size: number, value: number): string =>
  value.toString(16).padStart(size * 2, '0')
export const byte = (value: number): string => uint(1, value)

export function varint(value: number): string {
  return value < 128 ? byte(value) : byte((value % 128) + 128) + varint(Math.floor(value / 128))
}

/** A text or binary field. */
export const field = (hex: string): string => uint(2, hex.length / 2) + hex

/** A property block, or whatever begins with its length. */
export const block = (hex: string): string => varint(hex.length / 2) + hex

/** A packet from its first byte and its body. */
export const frame = (first: string, body: string): string => first + block(body)

/** What is wrong with a packet, if anything is. */
export function failure(
  hex: string,
  from: Sender,
  protocolVersion: Version = 5,
): WireError | undefined {
  try {
    decode(Buffer.from(hex, 'hex'), { from, protocolVersion })
  } catch (error) {
    return error as WireError
  }
  return undefined
}

export const kindOf = (hex: string, from: Sender, version: Version = 5): string | undefined =>
  failure(hex, from, version)?.kind

/** What is thrown, if anything is. */
export function thrown(attempt: () => unknown): unknown {
  try {
    attempt()
  } catch (error) {
    return error
  }
  return undefined
}
