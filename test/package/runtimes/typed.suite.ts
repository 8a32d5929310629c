/**
 * Typed topics before programs that are too large to be dependencies: the official parser of AsyncAPI reads the documents, and Vue, Svelte and Solid show
 * latest values with the lines of the guide.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { asyncapi } from '../../../src/asyncapi/index.js'
import { Client } from '../../../src/client/node.js'
import { MemoryBroker } from '../../../src/testing/broker/index.js'
import * as mq from '../../../src/typed/index.js'
import { root } from '../fixture.js'
import { withTools } from './fetched.js'

interface Parsed {
  readonly document?: {
    allChannels(): { all(): readonly { id(): string; address(): string | null }[] }
    allOperations(): {
      all(): readonly { id(): string; action(): string; reply(): object | undefined }[]
    }
    allMessages(): { all(): readonly object[] }
  }
  readonly diagnostics: readonly { readonly severity: number; readonly message: string }[]
}

const reading = z.object({
  at: z.iso.datetime(),
  celsius: z.number().min(-60),
  unit: z.enum(['C', 'F']).optional(),
})
const plant = mq.contract({
  temperature: mq.channel('plant/{line}/{n:number}/temperature', mq.json(reading), {
    qos: 1,
    retain: true,
  }),
  log: mq.channel('log/{rest...}', mq.text()),
  'odd/name ~ 1': mq.channel('odd', mq.bytes()),
  control: {
    setpoint: mq.operation(
      'plant/{line}/setpoint',
      mq.number(),
      mq.json(z.object({ was: z.number() })),
    ),
  },
})

const options = {
  info: { title: 'Plant', version: '1.0.0', description: 'All of it' },
  servers: {
    here: 'mqtts://broker.example:8883',
    web: 'wss://broker.example/mqtt',
    there: { host: 'x.example', protocol: 'mqtt' },
  },
  role: {
    send: ['temperature', 'odd/name ~ 1', 'control.setpoint'],
    receive: ['log', 'temperature'],
  },
  toJsonSchema: (schema: z.ZodType) => z.toJSONSchema(schema, { io: 'input' }),
}

withTools((tool) => {
  describe('the official parser of AsyncAPI', () => {
    const { Parser } = tool('@asyncapi/parser') as {
      Parser: new () => { parse(text: string): Promise<Parsed> }
    }
    const parse = async (document: object) => {
      const { document: parsed, diagnostics } = await new Parser().parse(JSON.stringify(document))
      return {
        parsed,
        errors: diagnostics.filter(({ severity }) => severity === 0).map(({ message }) => message),
      }
    }

    it('accepts the document of a contract, and finds all of it', async () => {
      const { parsed, errors } = await parse(asyncapi(plant, options))
      expect(errors).toEqual([])
      const channels = parsed?.allChannels().all() ?? []
      expect(channels.map((channel) => channel.id()).sort()).toEqual(
        ['control.setpoint', 'control.setpoint.reply', 'log', 'odd/name ~ 1', 'temperature'].sort(),
      )
      const operations = parsed?.allOperations().all() ?? []
      expect(
        operations.map((operation) => `${operation.action()} ${operation.id()}`).sort(),
      ).toEqual([
        'receive receive.log',
        'receive receive.temperature',
        'send send.control.setpoint',
        'send send.odd/name ~ 1',
        'send send.temperature',
      ])
      expect(
        operations.find((operation) => operation.id() === 'send.control.setpoint')?.reply(),
      ).toBeDefined()
      expect(parsed?.allMessages().all()).toHaveLength(5)
    })

    it('accepts one without a role, and one of an empty contract', async () => {
      expect((await parse(asyncapi(plant, { info: options.info }))).errors).toEqual([])
      expect((await parse(asyncapi(mq.contract({}), { info: options.info }))).errors).toEqual([])
    })

    it('would say what is wrong', async () => {
      const broken = asyncapi(plant, options) as { operations: Record<string, { channel: object }> }
      for (const operation of Object.values(broken.operations))
        operation.channel = { $ref: '#/channels/none' }
      expect((await parse(broken)).errors).not.toEqual([])
    })
  })

  describe('latest values in', () => {
    interface Row {
      readonly value: number
    }
    type Snapshot = ReadonlyMap<string, Row>

    interface Tanks {
      readonly getSnapshot: () => Snapshot
      readonly subscribe: (listener: () => void) => () => void
    }
    const guide = readFileSync(path.join(root, 'docs', 'typed.md'), 'utf8').split('\n')

    // What the guide shows, with the names of the framework.
    function shown(
      framework: string,
      names: Record<string, unknown>,
      tanks: Tanks,
      use: string,
    ): unknown {
      const row = guide.find((line) => line.startsWith(`| ${framework} |`)) ?? ''
      const lines = [...row.matchAll(/`([^`]+)`/g)].map(([, line]) => line as string)
      expect(lines.length).toBeGreaterThan(0)
      expect(lines.length).toBeLessThanOrEqual(3)
      return new Function('tanks', ...Object.keys(names), `${lines.join('\n')}\nreturn ${use}`)(
        tanks,
        ...Object.values(names),
      )
    }

    async function tried(
      look: (tanks: Tanks) => Promise<{ seen(): Snapshot; stop(): void }>,
    ): Promise<void> {
      const broker = new MemoryBroker()
      const client = new Client({ url: 'memory://broker', transport: broker.dial })
      await client.connect()
      const level = mq.channel('tank/{id}/level', mq.number()).on(client)
      const latest = await level.latest().ready
      let listeners = 0
      const subscribe = (listener: () => void): (() => void) => {
        const stop = latest.subscribe(listener)
        listeners += 1
        return () => {
          listeners -= 1
          stop()
        }
      }
      const { seen, stop } = await look({ getSnapshot: latest.getSnapshot, subscribe })
      const wait = async (holds: () => boolean): Promise<void> => {
        for (let n = 0; n < 400 && !holds(); n++)
          await new Promise((resolve) => setTimeout(resolve, 5))
        expect(holds()).toBe(true)
      }
      expect(seen().size).toBe(0)
      await level.publish({ id: 1 }, 1)
      await wait(() => seen().get('tank/1/level')?.value === 1)
      await level.publish({ id: 1 }, 2)
      await wait(() => seen().get('tank/1/level')?.value === 2)
      expect(listeners).toBe(1)
      stop()
      expect(listeners).toBe(0)
      await client.disconnect()
      await broker.close()
    }

    it('Vue', () =>
      tried(async (tanks) => {
        const { shallowRef, computed, effectScope, onScopeDispose } = tool('vue')
        const scope = effectScope()
        const made = scope.run(() =>
          shown('Vue', { shallowRef, onUnmounted: onScopeDispose }, tanks, 'value'),
        ) as { value: Snapshot }
        const rendered = computed(() => made.value)
        return { seen: () => rendered.value, stop: () => scope.stop() }
      }))

    it('Svelte', () =>
      tried(async (tanks) => {
        const folder = path.dirname(tool.resolve('svelte/package.json'))
        const { exports } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))
        const { readable } = await import(
          pathToFileURL(path.join(folder, exports['./store'].default)).href
        )
        const store = shown('Svelte', { readable }, tanks, 'store') as {
          subscribe(run: (value: Snapshot) => void): () => void
        }
        let value: Snapshot = new Map()
        const stop = store.subscribe((next) => {
          value = next
        })
        return { seen: () => value, stop }
      }))

    it('Solid', () =>
      tried(async (tanks) => {
        const { createSignal, createRoot, createMemo, onCleanup } = tool(
          path.join(path.dirname(tool.resolve('solid-js/package.json')), 'dist', 'solid.cjs'),
        )
        return createRoot((dispose: () => void) => {
          const read = shown('Solid', { createSignal, onCleanup }, tanks, 'value') as () => Snapshot
          return { seen: createMemo(() => read()), stop: dispose }
        })
      }))
  })
})
