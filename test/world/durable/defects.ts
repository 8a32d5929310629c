/**
 * Defects of what a store is for, planted to see the checker fail: each replaces a piece of source text while the world is bundled.
 *
 * A defect whose text does not occur exactly once stops the run: it has to follow the source.
 */
import type { Defect } from '../defects.js'

/** All of them. */
export const durableDefects: readonly Defect[] = [
  {
    name: 'a publish is sent before it is stored',
    by: ['early'],
    file: 'client/durable/kept-publishes.ts',
    find: 'this.#journal.write([putting(key, body)], written, failed)',
    replace: 'this.#journal.write([putting(key, body)], () => undefined, failed)\n    queueMicrotask(written)',
  },
  {
    name: 'PUBREL before its record',
    by: ['early'],
    file: 'client/session/send-window.ts',
    find: 'if (!this.#host.persistence.durable) return this.#release(id)',
    replace:
      "if (this.#host.persistence.durable) this.#host.persistence.request('put-release', id, () => undefined)\n    if (id > 0) return this.#release(id)",
  },
  {
    name: 'PUBCOMP before its record',
    by: ['early'],
    file: 'client/session/receive-window.ts',
    find: 'if (!this.#host.persistence.durable) return this.#complete(id)',
    replace:
      "if (this.#host.persistence.durable) this.#host.persistence.request('delete-inbound', id, () => undefined)\n      if (id > 0) return this.#complete(id)",
  },
  {
    name: 'PUBREC before its record',
    by: ['early'],
    file: 'client/session/receive-window.ts',
    find: '(store ? STORING : READY)',
    replace: 'READY',
  },
  {
    name: 'a message is handed out before its record',
    by: ['early'],
    file: 'client/durable/inbox.ts',
    find: 'this.#journal.write(operations, () => this.#handOut(messages, reader))',
    replace: 'this.#journal.insist(operations)\n    this.#handOut(messages, reader)',
  },
  {
    name: 'the record of a publish is deleted at PUBREC',
    by: ['early'],
    file: 'client/durable/kept-publishes.ts',
    find: "return [putting(this.#keys.publish(number), this.#encode(item, 'released', payload))]",
    replace: "return [{ type: 'delete', key: this.#keys.publish(number + payload.length * 0) }]",
  },
  {
    name: 'an entry and its publish end in two batches',
    by: ['twice', 'lost', 'left'],
    file: 'client/durable/kept-entries.ts',
    find: 'const heard = link.ended(error, changes)',
    replace: 'const heard = link.ended(error, [])\n    if (heard === true) this.#journal.insist(changes)',
  },
  {
    name: 'each process counts its messages from the start',
    by: ['id'],
    file: 'client/durable/keeper.ts',
    find: 'epoch: Math.max((known?.epoch ?? 0) + 1, Math.floor(platform.date()))',
    replace: 'epoch: known?.epoch ?? 1',
  },
  {
    name: 'what the store could not write counts as written',
    by: ['early'],
    file: 'client/durable/journal.ts',
    find: '    } catch (error) {\n      return storeError(error)\n    }',
    replace: '    } catch (error) {\n      storeError(error)\n    }',
  },
  {
    name: 'a recovered publish has no DUP',
    by: ['wire', 'broker', 'twice', 'lost'],
    file: 'client/publishing/unacknowledged.ts',
    find: 'output.publish(topic, item.payload, wire, packetId, true)',
    replace: 'output.publish(topic, item.payload, wire, packetId, false)',
  },
  {
    name: 'the id of a message is that of its packet identifier',
    by: ['id'],
    file: 'client/durable/inbox.ts',
    find: 'const isKnown = known !== undefined && view.dup && known.print === print && known.qos === view.qos',
    replace: 'const isKnown = known !== undefined',
  },
  {
    name: 'the queue says yes before the store does',
    by: ['lost'],
    file: 'queue/stored-queue.ts',
    find: '      await done\n',
    replace: '      void done.catch(() => undefined)\n',
  },
  {
    name: 'an entry is published again beside its recovered publish',
    by: ['twice'],
    file: 'client/durable/kept-publishes.ts',
    find: 'this.entries.restore(record.link, this.#keys.publish(number))',
    replace: "this.entries.restore({ ...record.link, key: '' }, this.#keys.publish(number))",
  },
  {
    name: 'a recovered publish ends untold',
    by: ['recovered', 'rest'],
    file: 'client/durable/kept-publishes.ts',
    find: '    this.#tell(item)\n',
    replace: '',
  },
  {
    name: 'what could not be stored is left behind',
    by: ['left', 'arrived'],
    file: 'client/durable/journal.ts',
    find: 'for (const { key } of operations) this.#undoing.add(key)',
    replace: '',
  },
  {
    name: 'a session is read while the client before writes',
    by: ['left', 'recovered', 'twice'],
    file: 'client/durable/keeper.ts',
    find: '    await leaving.get(config.store)?.get(keys.prefix)\n',
    replace: '',
  },
  {
    name: 'an entry that could not be added is left behind',
    by: ['left', 'arrived'],
    file: 'queue/entry-log.ts',
    find: 'if (adds !== undefined) this.#failed.add(adds)',
    replace: 'if (adds === 0) this.#failed.add(adds)',
  },
  {
    name: 'PUBREC of an earlier process overtakes others',
    by: ['broker'],
    file: 'client/session/receive-window.ts',
    find: 'if (state === QOS2_EARLIER && qos === 2 && !recognises) {',
    replace: `if (state === QOS2_EARLIER && qos === 2 && recognises) {
      this.open += 1
      this.ids.set(id, QOS2_RECEIVED)
      this.#host.acks.push(PUBREC, id, 0)
      return REPEAT
    }
    if (state === QOS2_EARLIER && qos === 2 && !recognises) {`,
  },
  {
    name: 'records of incoming messages stay for ever',
    by: ['left'],
    file: 'client/durable/keeper.ts',
    find: '    this.#inbox.confirm()\n',
    replace: '',
  },
  {
    name: 'what was received is forgotten with the process',
    by: ['early', 'id', 'twice'],
    file: 'client/durable/inbox.ts',
    find: 'if (record.received) this.#host.session.receiveWindow.ids.set(packetId, QOS2_EARLIER)',
    replace: 'if (record.received) this.#known.delete(packetId + QOS2_EARLIER * 0)',
  },
]
