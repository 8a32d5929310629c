/**
 * Payloads that say who sent them: how a message that arrives is known again, and what differs from what was given.
 *
 * A payload begins with the name of its call. One of no bytes at all has the name in its topic. Pure.
 */
import { payloadOf } from '../payloads.js'
import { allCalls, type Call, type PayloadPlan, type Program } from './program.js'

const decoder = new TextDecoder()
const emptyTopic = '/z/'

/** The name of a call: of its step, and of the how-manieth time a listener or handler made it. */
export function nameOf(id: number, time: number): string {
  return time === 0 ? `m${id}` : `m${id}n${time}`
}

/** The topic of a payload, relative. */
export function topicOf({ topic, size }: PayloadPlan, name: string): string {
  return size === 0 ? `t/z/${name}` : topic
}

/** The bytes of a payload. */
export function bytesOf({ size }: PayloadPlan, name: string): Uint8Array {
  return size === 0 ? new Uint8Array(0) : payloadOf(name, size)
}

/** Who sent a message; its first bytes as text where that is nobody. */
export function nameIn(topic: string, payload: Uint8Array): string {
  if (payload.length === 0) return topic.slice(topic.indexOf(emptyTopic) + emptyTopic.length)
  const head = decoder.decode(payload.subarray(0, 24))
  const dot = head.indexOf('.')
  return dot < 0 ? head : head.slice(0, dot)
}

/** The call that has this name. */
export function callNamed(program: Program, name: string): { readonly call: Call & PayloadPlan; readonly client: number } | undefined {
  const [, id, time] = /^m(\d+)(?:n(\d+))?$/.exec(name) ?? []
  if (id === undefined) return undefined
  const found = allCalls(program).find(({ step, call, nested }) => step.id === Number(id) && nested === (time !== undefined) && 'size' in call)
  return found === undefined ? undefined : { call: found.call as Call & PayloadPlan, client: found.step.client }
}

/** What differs from the bytes that were given; undefined where nothing does. */
export function wrongIn(program: Program, name: string, payload: Uint8Array): string | undefined {
  const found = callNamed(program, name)
  if (found === undefined) return undefined
  const wanted = bytesOf(found.call, name)
  if (Buffer.compare(wanted, payload) === 0) return undefined
  if (wanted.length !== payload.length) return `${payload.length} bytes, not ${wanted.length}`
  const at = wanted.findIndex((byte, index) => byte !== payload[index])
  return `byte ${at} of ${wanted.length} is ${payload[at]}, not ${wanted[at]}`
}
