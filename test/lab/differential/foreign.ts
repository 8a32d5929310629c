/** The foreign codecs: mqtt-packet in this process, paho.golang and mochi-mqtt in a child process. Bytes that are left over or missing are a refusal. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import mqttPacket from 'mqtt-packet'
import type { Case } from './generate.js'
import { type Fields, normalizedPacket } from './normalize.js'

/** Codecs that are not ours. */
export type Codec = 'mqtt-packet' | 'paho.golang' | 'mochi-mqtt'

/** What a codec makes of a packet. */
export interface Verdict {
  /** Why it refused. */
  readonly error?: string
  readonly fields?: Fields
  /** What it writes for the packet that it read. */
  readonly again?: Uint8Array
  /** Why it does not. */
  readonly writes?: string
}

/** By codec. One that was not asked is absent. */
export type Verdicts = Partial<Record<Codec, Verdict>>

const message = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** What mqtt-packet says. */
export function askMqttPacket({ bytes, version, kind }: Case): Verdict {
  const found: Fields[] = []
  let error: string | undefined
  try {
    const parser = mqttPacket.parser({ protocolVersion: version })
    parser.on('packet', (packet) => found.push(packet as unknown as Fields))
    parser.on('error', (thrown: Error) => {
      error ??= thrown.message
    })
    parser.parse(Buffer.from(bytes))
  } catch (thrown) {
    error ??= `throws: ${message(thrown)}`
  }
  const [packet] = found
  if (error !== undefined) return { error }
  if (packet === undefined) return { error: 'cut off' }
  if (bytes.length > headerOf(bytes) + (packet['length'] as number))
    return { error: 'bytes after the packet' }
  const spoken = packet['cmd'] === 'connect' ? (packet['protocolVersion'] as number) : version
  const fields = normalizedPacket(packet, spoken)
  return kind === 'faulty' ? { fields } : { fields, ...written(packet, spoken) }
}

/** Bytes of the fixed header: it keeps none of what it has begun to read of a packet behind the first. */
function headerOf(bytes: Uint8Array): number {
  let size = 2
  while ((bytes[size - 1] ?? 0) > 127) size++
  return size
}

function written(packet: Fields, protocolVersion: number): Pick<Verdict, 'again' | 'writes'> {
  try {
    return { again: mqttPacket.generate(packet as never, { protocolVersion }) }
  } catch (thrown) {
    return { writes: message(thrown) }
  }
}

interface Answer {
  readonly error?: string
  readonly fields?: Fields
  readonly again?: string
  readonly writes?: string
}

function verdictOf({ again, ...answer }: Answer): Verdict {
  return again === undefined ? answer : { ...answer, again: Buffer.from(again, 'hex') }
}

function question({ bytes, version, from, kind }: Case): Buffer {
  const head = Buffer.alloc(6)
  head[0] = version
  head[1] = (from === 'client' ? 1 : 0) | (kind === 'faulty' ? 0 : 2)
  head.writeUInt32BE(bytes.length, 2)
  return Buffer.concat([head, bytes])
}

/** The child process with the codecs written in Go. */
export class GoCodecs {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  readonly #chunks: AsyncIterator<Buffer>
  #held: Buffer = Buffer.alloc(0)
  #turn: Promise<unknown> = Promise.resolve()

  constructor(program: string) {
    // Packets that announce 256 MB are among them, and the codecs take that much memory at once.
    const env = { ...process.env, GOMAXPROCS: '1', GOGC: '800', GOMEMLIMIT: '1GiB' }
    this.#child = spawn(program, [], { stdio: ['pipe', 'pipe', 'inherit'], env })
    this.#chunks = this.#child.stdout[Symbol.asyncIterator]() as AsyncIterator<Buffer>
    // A child that has gone shows as an answer that ends.
    this.#child.stdin.on('error', () => undefined)
  }

  /** Asks about a batch. Batches are answered in the order in which they were asked. */
  ask(cases: readonly Case[]): Promise<Verdicts[]> {
    const count = Buffer.alloc(4)
    count.writeUInt32BE(cases.length)
    this.#child.stdin.write(Buffer.concat([count, ...cases.map(question)]))
    const answer = this.#turn.then(() => this.#answer())
    this.#turn = answer.catch(() => undefined)
    return answer
  }

  /** Ends the process. */
  end(): void {
    this.#child.stdin.end()
  }

  async #answer(): Promise<Verdicts[]> {
    const length = (await this.#take(4)).readUInt32BE(0)
    const lines = (await this.#take(length)).toString().trimEnd().split('\n')
    return lines.map((line) => {
      const [paho, mochi] = JSON.parse(line) as [Answer | null, Answer | null]
      return {
        ...(paho && { 'paho.golang': verdictOf(paho) }),
        ...(mochi && { 'mochi-mqtt': verdictOf(mochi) }),
      }
    })
  }

  async #take(count: number): Promise<Buffer> {
    const parts = [this.#held]
    for (let length = this.#held.length; length < count; ) {
      const { value, done } = await this.#chunks.next()
      if (done === true) throw new Error('the program with the Go codecs ended')
      parts.push(value)
      length += value.length
    }
    const all = Buffer.concat(parts)
    this.#held = all.subarray(count)
    return all.subarray(0, count)
  }
}
