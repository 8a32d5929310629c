/** Where something stands still, is full, on a terminal or wrong: how the packed command ends. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import path from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { freePort, listening } from '../support/servers.js'
import { bin, mqwire, start } from './program.js'
import { broker, fileOf, serve, subscribed, url } from './setting.js'

describe('where something stands still or is full', () => {
  /** A server that accepts CONNECT on 3.1.1 and answers nothing else. */
  const silent = async (): Promise<string[]> => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.write(Uint8Array.of(0x20, 3, 0, 0, 0)))
    })
    servers.push(server)
    return ['--url', `mqtt://127.0.0.1:${await listening(server)}`]
  }
  const servers: Server[] = []
  afterEach(() => {
    for (const server of servers.splice(0)) server.close()
  })

  it('a time limit begins before the SUBACK', async () => {
    const { code, err } = await mqwire([
      'sub',
      ...(await silent()),
      '-n',
      '1',
      '--for',
      '300ms',
      'a',
    ])
    expect({ code, err }).toEqual({
      code: 4,
      err: 'mqwire: the broker did not answer the SUBSCRIBE in time\n',
    })
  })

  it.each([
    ['pub', ['a', 'x', '-q', '1']],
    ['replay', [fileOf('one.jsonl')]],
    ['doctor', ['--probe']],
  ])('%s ends at one Ctrl-C', async (command, args) => {
    await writeFile(
      fileOf('one.jsonl'),
      '{"time":"2026-01-01T00:00:00Z","topic":"a","qos":1,"payload":"x"}\n',
    )
    const running = start([command, ...(await silent()), '-v', ...args], { input: '' })
    await running.said(command === 'doctor' ? 'CONNACK' : 'connected')
    running.child.kill('SIGINT')
    expect((await running.ended).code).toBe(130)
  })

  it('`--for` holds while nothing connects, or answers', async () => {
    const mute = createServer((socket) => socket.on('error', () => undefined).resume())
    servers.push(mute)
    const at = ['--url', `mqtt://127.0.0.1:${await listening(mute)}`]
    const quiet = await silent()
    const limit = ['--for', '500ms']
    const ends = await Promise.all([
      mqwire(['sub', ...at, ...limit, '-n', '1', 'a']),
      mqwire(['simulate', ...at, ...limit, 'home']),
      mqwire(['respond', ...quiet, ...limit, 'a', '--reply', 'x']),
    ])
    expect(ends.map(({ code }) => code)).toEqual([4, 4, 4])
  })

  it('a device that waits for its SUBACK, and output to a file, end at one Ctrl-C', async () => {
    const simulated = start(['simulate', ...(await silent()), 'home', '--devices', '1', '-v'])
    await simulated.said('connected')
    const line = `exec '${bin}' simulate trucks --print --for 20d > '${fileOf('printed')}'`
    const printed = spawn('sh', ['-c', line])
    const closed = once(printed, 'close')
    await expect
      .poll(() => existsSync(fileOf('printed')) && statSync(fileOf('printed')).size)
      .toBeGreaterThan(0)
    simulated.child.kill('SIGINT')
    printed.kill('SIGINT')
    expect((await simulated.ended).code).toBe(130)
    expect(await closed).toEqual([130, null])
  })

  it('a password is asked on a terminal only', async () => {
    const { code, err } = await mqwire(['pub', ...url, '--ask-password', 'a', 'x'])
    expect(code).toBe(1)
    expect(err).toContain('standard input is no terminal')
  })

  it('what a full disk did not take is not acknowledged', async () => {
    await broker.close()
    await serve({ maxQueuedMessages: 10 })
    const session = ['--client-id', 'r', '--no-clean-start', '--session-expiry', '60']
    expect(
      (await mqwire(['sub', ...url, ...session, '-q', '1', '--until-subscribed', 'a'])).code,
    ).toBe(0)
    broker.publish({ topic: 'a', payload: 'kept', qos: 1 })
    const full = await mqwire([
      'record',
      ...url,
      ...session,
      '-q',
      '1',
      'a',
      '/dev/full',
      '--append',
      '-n',
      '1',
    ])
    expect(full.code).toBe(5)
    expect(full.err).toContain('ENOSPC')
    const read = await mqwire(['sub', ...url, ...session, '-q', '1', '-n', '1', '--raw', 'a'])
    expect(read).toMatchObject({ code: 0, out: 'kept' })
  })

  it('a recording that did not begin leaves no file', async () => {
    const file = fileOf('none.jsonl')
    const none = ['--url', `mqtt://127.0.0.1:${await freePort()}`]
    expect((await mqwire(['record', ...none, 'a', file])).code).toBe(2)
    expect(existsSync(file)).toBe(false)
  })

  it('a refused filter leaves the file as it was', async () => {
    await broker.close()
    await serve({ authorizeSubscribe: () => 0x87 })
    const [old, none] = [fileOf('old.jsonl'), fileOf('never.jsonl')]
    await writeFile(old, 'kept\n')
    expect((await mqwire(['record', ...url, 'a', old, '--force'])).code).toBe(3)
    expect(await readFile(old, 'utf8')).toBe('kept\n')
    expect((await mqwire(['record', ...url, 'a', none])).code).toBe(3)
    expect(existsSync(none)).toBe(false)
  })

  it.each([
    ['await new Promise(() => {})', 'never ends'],
    ['throw null', 'null'],
    ["throw new Error('of the module')", 'of the module'],
  ])('a module that is %j is named', async (text, problem) => {
    const file = fileOf(`module-${problem.replaceAll(' ', '-')}.mjs`)
    await writeFile(file, text)
    const ends = await Promise.all([
      mqwire(['broker', '--port', '0', '--hooks', file]),
      mqwire(['sub', ...url, '--contract', file, 'a']),
    ])
    for (const { code, err } of ends) {
      expect(code).toBe(1)
      expect(err).toContain(file)
      expect(err).toContain(problem)
    }
  })

  it('a broker that goes away is not a refusal', async () => {
    const running = start(['bench', 'fan-out', ...url, '--subscribers', '2', '-d', '20s'])
    await expect.poll(() => broker.accepted.length).toBeGreaterThan(1)
    await broker.close()
    expect((await running.ended).code).toBe(2)
  })
})

describe('on a terminal', () => {
  /** Runs it on a terminal of its own, and types when a text stands there. */
  const typed = (args: readonly string[], when: string, keys: string): Promise<[number, string]> =>
    new Promise((resolve) => {
      const line = [bin, ...args].map((arg) => `'${arg}'`).join(' ')
      const child = spawn('script', ['-qec', line, '/dev/null'], {
        env: { ...process.env, TERM: 'xterm' },
      })
      let screen = ''
      let isTyped = false
      child.stdout.on('data', (chunk: Uint8Array) => {
        screen += Buffer.from(chunk)
        if (isTyped || !screen.includes(when)) return
        isTyped = true
        // The answer is read once the question stands.
        setTimeout(() => child.stdin.write(keys), 200)
      })
      child.on('close', (code) => resolve([code ?? -1, screen]))
    })

  it.each([
    ['y\r', 0, 0],
    ['n\r', 1, 1],
    ['\u0003', 130, 1],
    ['\u0004', 130, 1],
  ])('clear asks visibly; %j ends with %i', async (keys, code, left) => {
    broker.publish({ topic: 'a/1', payload: 'x', retain: true })
    const [ended, screen] = await typed(
      ['clear', ...url, '--quiet-for', '300ms', 'a/#'],
      'Remove this message? [y/N] ',
      keys,
    )
    expect(ended).toBe(code)
    // Drawn at the left edge, and not erased afterwards.
    const drawn = screen.slice(screen.lastIndexOf('Remove this message?'))
    expect(drawn.split('\r', 1)[0]).not.toContain('\u001b[0J')
    expect(broker.retained.size).toBe(left)
  })

  it('a password is asked without an echo', async () => {
    await broker.close()
    const seen: string[] = []
    await serve({
      authenticate: ({ password }) => {
        seen.push(Buffer.from(password ?? []).toString())
        return true
      },
    })
    const args = ['pub', ...url, '--username', 'u', '--ask-password', 'a', 'x']
    const [code, screen] = await typed(args, 'Password: ', 'geheim\r')
    expect([code, seen]).toEqual([0, ['geheim']])
    expect(screen).not.toContain('geheim')
  })
})

describe('exit codes', () => {
  it.each([
    ['an option that is not there', ['sub', '--jsn', 'a'], '--json'],
    ['a command that is not there', ['sbu', 'a'], 'sub'],
    ['a filter that is wrong', ['sub', 'a/#/b'], 'a/#/b'],
    ['a topic that is wrong', ['pub', 'a/+', 'x'], 'a/+'],
    ['a number that is wrong', ['sub', '-q', '3', 'a'], '0 to 2'],
    ['a time that is wrong', ['sub', '--for', 'soon', 'a'], '10s'],
    ['a code that is wrong', ['sub', '--format', '%k', 'a'], '%k'],
    ['a file that is not there', ['pub', 'a', '--file', '/not/there'], 'ENOENT'],
    ['too many payloads', ['pub', 'a', 'x', '--lines'], 'exclude'],
    ['two ways to print', ['sub', '--raw', '--format', '%p', 'a'], '--raw'],
    ['a contract that is not printed', ['sub', '--raw', '--contract', 'x.js', 'a'], '--contract'],
    ['half of a client certificate', ['sub', '--cert', bin, 'a'], '--key'],
    ['an option of another name', ['sub', '--no-clean-start', 'a'], '--client-id'],
  ])('1 for %s', async (_what, [command = '', ...args], text) => {
    const { code, out, err } = await mqwire([command, ...(command === 'sbu' ? [] : url), ...args])
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toContain(text)
  })

  it('1 for a URL, 2 without a broker, each in one line that says what to do', async () => {
    const [wrong, none] = await Promise.all([
      mqwire(['pub', '--url', 'http://127.0.0.1', 'a', 'x']),
      mqwire(['pub', '--url', `mqtt://127.0.0.1:${await freePort()}`, 'a', 'x']),
    ])
    expect([wrong.code, none.code]).toEqual([1, 2])
    expect(none.err).toMatch(/^mqwire: .*ECONNREFUSED.*doctor.*\n$/)
  })

  it('3 for what the broker refuses, with its reason', async () => {
    await broker.close()
    await serve({ authorizePublish: () => 0x87, authorizeSubscribe: () => 0x87 })
    const [pub, sub] = await Promise.all([
      mqwire(['pub', ...url, '-q', '1', 'a', 'x']),
      mqwire(['sub', ...url, '--until-subscribed', 'a']),
    ])
    expect([pub.code, sub.code]).toEqual([3, 3])
    for (const { err } of [pub, sub]) expect(err).toMatch(/not authorized/i)
  })

  it('4 at a deadline, 130 by Ctrl-C, 0 where the reader of a pipe has enough', async () => {
    const late = mqwire(['sub', ...url, '-n', '1', '--for', '300ms', 'never'])
    const stopped = start(['sub', ...url, 'a'])
    await subscribed('a')
    stopped.child.kill('SIGINT')
    expect(await late).toEqual({ code: 4, out: '', err: 'mqwire: 0 of 1 messages came in time\n' })
    expect(await stopped.ended).toEqual({ code: 130, out: '', err: '' })
    const piped = new Promise<string>((resolve, reject) => {
      const line = `'${bin}' sub ${url.join(' ')} many | head -n 1`
      execFile('sh', ['-c', line], { timeout: 20_000 }, (error, out) =>
        error ? reject(error) : resolve(out),
      )
    })
    await subscribed('many')
    const again = setInterval(() => broker.publish({ topic: 'many', payload: 'x' }), 20)
    expect(await piped).toBe('many x\n')
    clearInterval(again)
  })

  it('takes options from the environment, and the password from a file', async () => {
    await broker.close()
    const seen: unknown[] = []
    await serve({
      authenticate: ({ clientId, username, password, keepAlive }) => {
        seen.push([clientId, username, Buffer.from(password ?? []).toString(), keepAlive])
        return true
      },
    })
    await writeFile(fileOf('password'), 'secret\n')
    const env = {
      MQWIRE_URL: url[1] ?? '',
      MQWIRE_CLIENT_ID: 'me',
      MQWIRE_KEEP_ALIVE: '7',
      MQWIRE_RETAIN: '0',
    }
    const safe = await mqwire(
      ['pub', '--username', 'u', '--password-file', fileOf('password'), 'a', 'x'],
      { env },
    )
    const shown = await mqwire(['pub', '--username', 'u', '--password', 'secret', 'a', 'x'], {
      env,
    })
    expect(seen).toEqual([
      ['me', 'u', 'secret', 7],
      ['me', 'u', 'secret', 7],
    ])
    expect(safe).toEqual({ code: 0, out: '', err: '' })
    expect(shown.err).toMatch(/list of processes/)
    expect(broker.accepted.map(({ retain }) => retain)).toEqual([false, false])
  })

  it('takes a profile, below the environment and the command line', async () => {
    await broker.close()
    const passwords: string[] = []
    const seen: unknown[] = []
    await serve({
      authenticate: ({ clientId, username, cleanStart, password }) => {
        passwords.push(Buffer.from(password ?? []).toString())
        return seen.push([clientId, username, cleanStart]) > 0
      },
    })
    const env = { XDG_CONFIG_HOME: fileOf('config') }
    const run = (...args: string[]) => mqwire(args, { env })
    const add = ['profile', 'add', 'plant', ...url]
    expect((await run(...add, '--username', 'u', '--password', 'x')).err).toContain(
      '--password-file',
    )
    expect((await run(...add, '--protocol', '6')).code).toBe(1)
    await run(...add, '--username', 'u', '--client-id', 'kept', '--no-clean-start')
    await run('profile', 'add', 'other', '--url', 'mqtt://127.0.0.1:1')
    await run('pub', '--profile', 'plant', 'a', 'x')
    expect((await run('pub', '--profile', 'plnt', 'a', 'x')).err).toContain('plant, other')
    expect((await run('profile', 'use', 'plant')).code).toBe(0)
    expect((await run('profile', 'list')).out).toBe(
      `* plant  ${url[1]}  u\n  other  mqtt://127.0.0.1:1\n`,
    )
    await mqwire(['pub', '--username', 'c', 'a', 'x'], { env: { ...env, MQWIRE_CLIENT_ID: 'env' } })
    expect(seen).toEqual([
      ['kept', 'u', false],
      ['env', 'c', false],
    ])
    expect((await run('profile', 'remove', 'plant')).code).toBe(0)
    expect((await run('profile', 'list')).out).toBe('  other  mqtt://127.0.0.1:1\n')
    expect((await run('profile', 'add', 'x', '--header', 'a: 1', '--header', 'b: 2')).code).toBe(1)
    // No password, and no profile in use, for another broker.
    await writeFile(fileOf('secret'), 'kept')
    await run(...add, '--username', 'u', '--password-file', fileOf('secret'))
    await run('profile', 'use', 'plant')
    await run('pub', '--password', 'typed', 'a', 'x')
    await run('pub', ...url, 'a', 'x')
    expect(passwords.slice(-2)).toEqual(['typed', ''])
    await writeFile(path.join(fileOf('config'), 'mqwire', 'profiles.json'), '[')
    expect((await run('sub', '--help')).code).toBe(0)
    expect(await run('pub', 'a', 'x')).toMatchObject({
      code: 1,
      err: expect.stringContaining('profiles.json'),
    })
  })

  it('a shell completes commands, options and choices', async () => {
    const completed = (line: string): Promise<string[]> =>
      new Promise((resolve, reject) => {
        const script = `PATH="${path.dirname(bin)}:$PATH"; source <(mqwire completion bash)
          COMP_WORDS=(${line}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _mqwire; echo "\${COMPREPLY[*]}"`
        execFile('bash', ['-c', script], (error, out) =>
          error ? reject(error) : resolve(out.trim().split(/\s+/)),
        )
      })
    const [commands, scenarios, options, choices] = await Promise.all([
      completed('mqwire re'),
      completed('mqwire bench fan'),
      completed('mqwire sub --qu'),
      completed("mqwire pub --protocol ''"),
    ])
    expect(commands).toEqual(['request', 'respond', 'record', 'replay'])
    expect(scenarios).toEqual(['fan-out', 'fan-in'])
    expect(options).toEqual(['--quiet-for', '--quiet'])
    expect(choices).toEqual(['5', '4', 'auto'])
  })

  it('0 for help, which teaches by examples', async () => {
    const { code, out } = await mqwire(['--help'])
    expect(code).toBe(0)
    const names = [...out.matchAll(/^ {2}(\w+) \[/gm)].map(([, name = '']) => name)
    expect(names.length).toBeGreaterThan(9)
    for (const help of await Promise.all(names.map((name) => mqwire([name, '--help'])))) {
      expect(help.code).toBe(0)
      expect(help.out).toContain('Examples:\n')
    }
  })
})
