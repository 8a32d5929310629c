/** Latest values in Vue, Svelte and Solid, with the lines of the guide. The frameworks are too large to be dependencies. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { Client } from '../../../src/client/node.js'
import { MemoryBroker } from '../../../src/testing/broker/index.js'
import * as mq from '../../../src/typed/index.js'
import { root } from '../fixture.js'
import { withTools } from './fetched.js'

withTools((tool) => {
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
