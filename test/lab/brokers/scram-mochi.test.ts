/**
 * SCRAM-SHA-256 against an implementation that is not ours: mochi-mqtt with github.com/xdg-go/scram, built here where there is a Go toolchain.
 *
 * mochi itself knows no mechanism: it hands AUTH packets to hooks, and the hook of `scram-mochi/main.go` gives them to that library. Where Go is
 * missing, or its modules cannot be had, the tests are left out, with the reason printed.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { scramSha256 } from '../../../src/auth/index.js'
import { Client, type ClientOptions, MqttError } from '../../../src/client/node.js'
import { take, within } from '../../real/waiting.js'
import { buildGo } from './building.js'

const built = await buildGo('scram-mochi')
const program = built.missing === undefined ? join(built.folder, 'broker') : ''

const users = {
  user: 'pencil',
  'a,b=c': 'with, and =',
  'I\u00adX': 'p\u00e4ss \u2168\u00a0\u20ac',
  'e\u0301': '\u5bc6\u7801',
}

class Mochi {
  readonly #child: ChildProcess
  readonly #clients: Client[] = []
  readonly url: Promise<string>

  // Ends with its standard input, however this process ends.
  constructor(...options: string[]) {
    this.#child = spawn(program, ['-users', JSON.stringify(users), ...options], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.url = new Promise((resolve, reject) => {
      this.#child.once('error', reject).once('exit', () => reject(new Error('the broker ended')))
      this.#child.stdout
        ?.setEncoding('utf8')
        .once('data', (text: string) => resolve(`mqtt://${text.trim()}`))
    })
    this.url.catch(() => undefined)
  }

  async client(options: ClientOptions): Promise<Client> {
    const client = new Client(await within(this.url, 'the broker'), {
      reconnect: false,
      ...options,
    })
    this.#clients.push(client)
    return client
  }

  async connect(username: string, password: string): Promise<Client> {
    const client = await this.client({ auth: scramSha256({ username, password }) })
    await within(client.connect(), 'connecting')
    return client
  }

  /** What connecting rejects with. */
  async refuses(options: ClientOptions): Promise<MqttError> {
    const client = await this.client(options)
    const outcome = await within(
      client.connect().then(
        () => undefined,
        (error: unknown) => error,
      ),
      'connecting',
    )
    if (!MqttError.is(outcome)) throw new Error('it was to be refused')
    return outcome
  }

  stop(): void {
    for (const client of this.#clients) client.destroy()
    this.#child.kill()
  }
}

if (built.missing !== undefined) {
  const reason = built.missing
  console.warn(`The SCRAM tests on mochi are left out: ${reason}`)
  it(`SCRAM on mochi is left out: ${reason}`, ({ skip }) => skip(reason))
} else {
  describe('SCRAM-SHA-256 on mochi', () => {
    const brokers: Mochi[] = []
    const mochi = (...options: string[]): Mochi => {
      const broker = new Mochi(...options)
      brokers.push(broker)
      return broker
    }
    afterEach(() => {
      for (const broker of brokers.splice(0)) broker.stop()
    })

    it.each(Object.entries(users))('%j logs in, and works', async (username, password) => {
      const client = await mochi().connect(username, password)
      const subscription = await within(client.subscribe('a', { qos: 1 }), 'subscribing')
      await within(client.publish('a', 'hello', { qos: 1 }), 'publishing')
      const message = await take(subscription)
      expect(message.text()).toBe('hello')
      message.ack()
      await within(client.disconnect(), 'disconnecting')
    })

    it('spellings that SASLprep makes one log in too', async () => {
      const broker = mochi()
      await broker.connect('IX', 'p\u00e4ss IX \u20ac')
      await broker.connect('\u00e9', '\u5bc6\u7801')
    })

    it('more rounds than usual', async () => {
      await mochi('-iterations', '100000').connect('user', 'pencil')
    })

    it.each([
      ['user', 'pencils'],
      ['nobody', 'pencil'],
    ])('%s with %s is refused with 0x87', async (username, password) => {
      const error = await mochi().refuses({ auth: scramSha256({ username, password }) })
      expect(error).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x87 })
    })

    it('another method is refused with 0x8C', async () => {
      const error = await mochi().refuses({
        auth: { method: 'NONE', start: () => 'x', continue: () => 'x' },
      })
      expect(error).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x8c })
    })

    it.each([
      ['a server that asks for too few rounds', '-iterations=4095'],
      ['a server that does not know the password', '-lie'],
    ])('%s: ERR_AUTH_FAILED', async (_what, option) => {
      const error = await mochi(option).refuses({
        auth: scramSha256({ username: 'user', password: 'pencil' }),
      })
      expect(error).toMatchObject({ code: 'ERR_AUTH_FAILED', fault: 'remote' })
    })

    it('authenticates again on the open connection, as often as wanted', async () => {
      const client = await mochi().connect('user', 'pencil')
      for (let count = 0; count < 3; count += 1)
        await within(client.reauthenticate(), 'the re-authentication')
      await within(client.publish('a', 'still here', { qos: 1 }), 'publishing')
      expect(client.state).toBe('connected')
    })
  })
}
