/**
 * Every shared vector through both scanners, whole and in every kind of pieces: the same frames, fields and errors.
 */
import { describe, expect, it } from 'vitest'
import { transportForms } from '../wire/byte-forms.js'
import { bytesOf, drip, readVectors, splits, type Vector } from '../wire/vector-files.js'
import { always, differs, instantiate, type Setting, tellFramer, tellScanner } from './scanner.js'
import type { Delivery } from './story.js'

const memory = instantiate()

function compare(setting: Setting, chunks: () => Iterable<Uint8Array>): void {
  for (const inPlace of [true, false]) {
    const deliveries = Array.from(chunks(), (bytes, index): Delivery => {
      return {
        bytes: bytes.slice(),
        inPlace,
        form: transportForms[index % transportForms.length] as string,
      }
    })
    const story = tellScanner(memory, setting, deliveries, always)
    expect(differs(tellFramer(setting, deliveries), story)).toBeUndefined()
  }
}

function compareVector(vector: Vector, protocolVersion: 4 | 5): void {
  const bytes = bytesOf(vector)
  for (const maximumPacketSize of [268_435_460, bytes.length, bytes.length - 1]) {
    const setting = { protocolVersion, maximumPacketSize }
    compare(setting, () => [bytes])
    compare(setting, () => drip(bytes))
  }
  for (const chunks of splits(bytes))
    compare({ protocolVersion, maximumPacketSize: 1 << 20 }, () => chunks)
}

describe.each([
  ['5.0', 5, '../../rules/vectors.json'],
  ['3.1.1', 4, './vectors-311.json'],
] as const)('shared vectors of %s', (_name, version, file) => {
  const vectors = readVectors(file).filter((vector) => vector.fill === undefined)

  it.each(vectors.map((vector) => [vector.name, vector] as const))('%s', (_, vector) => {
    compareVector(vector, version)
    compareVector(vector, version === 5 ? 4 : 5)
  })
})
