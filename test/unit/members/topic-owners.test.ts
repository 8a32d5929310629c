/** The order of a topic while its member changes. */
import { expect, it } from 'vitest'
import { aborted, type Deferred, deferred, onAbort } from '../../../src/common/abort.js'
import { type Call, TopicOwners } from '../../../src/members/topic-owners.js'
import { WaitingRoom } from '../../../src/members/waiting.js'

class Rig {
  readonly sent: {
    readonly member: string | undefined
    readonly text: string
    readonly end: Deferred<string>
  }[] = []
  up = ['a', 'b']
  readonly gone = new Set<string>()
  moves = false
  #number = 0
  readonly owners = new TopicOwners<string>(
    {
      choose: () => this.up[0],
      takes: (member) => !this.gone.has(member),
      leaves: (member) => this.moves && !this.up.includes(member),
    },
    new WaitingRoom(),
  )

  run(text: string, signal?: AbortSignal): Promise<string> {
    this.#number += 1
    const call: Call<string, string> = {
      number: this.#number,
      send: (member) => {
        const end = deferred<string>()
        this.sent.push({ member, text, end })
        return end.promise
      },
      again: (error, member) => this.gone.has(member) && error === 'unsent',
      patience: { size: 1, watch: (end) => onAbort(signal, () => end(aborted(signal))) },
    }
    return this.owners.run('t', call)
  }

  get story(): string[] {
    return this.sent.map(({ member, text }) => `${member}:${text}`)
  }
}

/** One call is under way at `a`, which takes nothing more. */
function leaving(): Rig {
  const rig = new Rig()
  void rig.run('1')
  rig.up = ['b']
  rig.gone.add('a')
  return rig
}

const turns = async (): Promise<void> => {
  for (let step = 0; step < 10; step++) await undefined
}

it('goes on with the member that has something in flight, though another one is chosen now', async () => {
  const rig = new Rig()
  void rig.run('1')
  rig.up = ['b', 'a']
  void rig.run('2')
  expect(rig.story).toEqual(['a:1', 'a:2'])
  for (const { end } of rig.sent) end.resolve('')
  await turns()
  expect(rig.owners.size).toBe(0)
  void rig.run('3')
  expect(rig.story.at(-1)).toBe('b:3')
})

it('waits for what a member that takes nothing more has in flight', async () => {
  const rig = leaving()
  void rig.run('2')
  void rig.run('3')
  await turns()
  expect(rig.story).toEqual(['a:1'])
  rig.sent[0]?.end.resolve('')
  await turns()
  expect(rig.story).toEqual(['a:1', 'b:2', 'b:3'])
})

it('gives what was certainly not sent to another one, in the order of the calls, before later calls', async () => {
  const rig = new Rig()
  const ends = [rig.run('1'), rig.run('2'), rig.run('3')]
  rig.up = ['b']
  rig.gone.add('a')
  ends.push(rig.run('4'))
  const [one, two, three] = rig.sent
  one?.end.reject('unknown')
  three?.end.reject('unsent')
  two?.end.reject('unsent')
  ends.push(rig.run('5'))
  await expect(ends[0]).rejects.toBe('unknown')
  await turns()
  expect(rig.story).toEqual(['a:1', 'a:2', 'a:3', 'b:2', 'b:3', 'b:4', 'b:5'])
  for (const { end } of rig.sent) end.resolve('done')
  expect(await Promise.all(ends.slice(1))).toEqual(['done', 'done', 'done', 'done'])
  expect(rig.owners.size).toBe(0)
})

it('gives up the order where that was asked for', () => {
  const rig = new Rig()
  rig.moves = true
  void rig.run('1')
  rig.up = ['b']
  void rig.run('2')
  expect(rig.story).toEqual(['a:1', 'b:2'])
})

it('keeps a topic where it is while no other member is up', () => {
  const rig = new Rig()
  rig.moves = true
  void rig.run('1')
  rig.up = []
  void rig.run('2')
  expect(rig.story).toEqual(['a:1', 'a:2'])
})

it('an abort ends the wait of its call alone', async () => {
  const rig = leaving()
  const abort = new AbortController()
  const two = rig.run('2', abort.signal)
  void rig.run('3')
  abort.abort()
  await expect(two).rejects.toMatchObject({ code: 'ERR_ABORTED' })
  rig.sent[0]?.end.resolve('')
  await turns()
  expect(rig.story).toEqual(['a:1', 'b:3'])
})

it('lets no more than 10,000 calls wait', async () => {
  const rig = leaving()
  for (let count = 0; count < 10_000; count++) void rig.run(String(count))
  await expect(rig.run('x')).rejects.toMatchObject({ code: 'ERR_QUEUE_FULL' })
  rig.sent[0]?.end.resolve('')
  await turns()
  expect(rig.sent).toHaveLength(10_001)
})

it('a call that throws rejects, and those behind it go on', async () => {
  const owners = new TopicOwners<string>(
    { choose: () => 'a', takes: () => true, leaves: () => false },
    new WaitingRoom(),
  )
  const fail = (): Promise<string> => {
    throw new TypeError('no promise')
  }
  const call = (number: number, send: () => Promise<string>): Call<string, string> => ({
    number,
    send,
    again: () => false,
    patience: { size: 1, watch: () => () => undefined },
  })
  const first = owners.run('t', call(1, fail))
  const second = call(2, () => Promise.resolve('sent'))
  expect(await owners.run('t', second)).toBe('sent')
  await expect(first).rejects.toThrow('no promise')
  expect(owners.size).toBe(0)
})
