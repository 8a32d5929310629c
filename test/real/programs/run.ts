/**
 * Runs cells: one program, with one package, on one broker over one transport, with one window. Each cell is a process of its own, with a tap on the
 * wire; brokers and taps live here.
 *
 * A cell that hangs, or freezes its event loop, is killed and has failed.
 */
import { fork } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import * as esbuild from 'esbuild'
import { nodeBundle } from '../../support/node-bundle.js'
import type { Broker, Setup, TransportName } from '../brokers.js'
import { type Doom, ShapedLink } from '../link.js'
import type { Missing, Site, SiteName } from '../sites.js'
import type { ToCell, ToParent } from './cell.js'
import type { Figures } from './figures.js'
import { nothingSeen, type Seen, tapping } from './tap.js'
import type { Assignment, Order, Program } from './world.js'

export interface Cell {
  readonly program: Program
  readonly broker: SiteName
  readonly transport: TransportName
  readonly window?: number
  readonly scale?: number
}

export interface Result {
  readonly program: string
  readonly broker: SiteName
  readonly transport: TransportName
  readonly window: number | undefined
  readonly figures: Figures
  readonly seen: Seen
}

const nothing: Figures = {
  sent: 0,
  due: 0,
  delivered: 0,
  lost: 0,
  twice: 0,
  connections: 0,
  endedByUs: {},
  endedByPeer: {},
  failures: [],
  milliseconds: 0,
}

/** One JavaScript file of the program of a cell, from the sources. The working directory is the checkout. */
async function bundleCell(): Promise<string> {
  const folder = path.resolve('node_modules/.cache/mqwire')
  mkdirSync(folder, { recursive: true })
  const outfile = path.join(folder, `cell-${process.pid}.mjs`)
  const entryPoints = [path.resolve('test/real/programs/cell.ts')]
  await esbuild.build({ ...nodeBundle, entryPoints, outfile, logLevel: 'warning' })
  return outfile
}

function obey(order: Order, argument: unknown, broker: Broker, link: ShapedLink): unknown {
  if (order === 'kill') return broker.kill()
  if (order === 'shut down') return broker.shutDown()
  if (order === 'live') return broker.live()
  if (order === 'cut links') return link.cut()
  if (order === 'stall' || order === 'go on')
    return void Object.assign(link, { stalled: order === 'stall' })
  if (order === 'shape') return void Object.assign(link.rates, argument)
  if (order === 'doom') return link.doom(argument as Doom)
  return link.doomed
}

function inProcess(
  file: string,
  assignment: Assignment,
  patience: number,
  handle: (order: Order, argument: unknown) => unknown,
): Promise<Figures> {
  return new Promise((resolve) => {
    const child = fork(file, [], { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] })
    let figures: Figures | undefined
    let errors = ''
    let late = false
    const reap = (): void => void child.kill('SIGKILL')
    process.once('exit', reap)
    const timer = setTimeout(() => {
      late = true
      reap()
    }, patience)
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      errors = `${errors}${text}`.slice(-2000)
    })
    child.on('message', (message: ToParent) => {
      if ('figures' in message) figures = message.figures as Figures
      else {
        const answer = (rest: Partial<ToCell>): void =>
          void (child.connected && child.send({ done: message.number, ...rest } as ToCell))
        Promise.resolve(handle(message.order, message.argument)).then(
          (result) => answer({ result } as Partial<ToCell>),
          (error: unknown) => answer({ error: String(error) } as Partial<ToCell>),
        )
      }
    })
    child.once('close', (code) => {
      clearTimeout(timer)
      process.off('exit', reap)
      const why = late
        ? `the process hung for ${patience} ms`
        : `the process ended with ${code}: ${errors}`
      resolve(figures ?? { ...nothing, failures: [why] })
    })
    child.send({ assignment } satisfies ToCell)
  })
}

/** Brokers, started when they are first asked for; those that are slow to start are kept. */
export class Runner {
  readonly #file: string
  readonly #sites: ReadonlyMap<SiteName, Site>
  readonly #kept = new Map<string, Broker>()

  /** Those that wait for others to end. */
  readonly #waiting: (() => void)[] = []
  #free: number

  static async start(sites: readonly (Site | Missing)[], atATime = 1): Promise<Runner> {
    return new Runner(await bundleCell(), sites, atATime)
  }

  private constructor(file: string, sites: readonly (Site | Missing)[], atATime: number) {
    this.#file = file
    this.#free = atATime
    this.#sites = new Map(
      sites.flatMap((site) => ('missing' in site ? [] : [[site.name, site] as const])),
    )
  }

  /** Undefined when the broker cannot be had here, or does not listen on the transport. */
  async run(cell: Cell): Promise<Result | undefined> {
    const site = this.#sites.get(cell.broker)
    if (site === undefined) return undefined
    if (this.#free === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#free -= 1
    try {
      return await this.#on(site, cell)
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free += 1
      else next()
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#kept.values()].map((broker) => broker.stop()))
    rmSync(this.#file, { force: true })
  }

  async #on(site: Site, cell: Cell): Promise<Result | undefined> {
    const setup = cell.program.setup ?? 'own'
    const broker = await this.#broker(site, setup)
    try {
      const url = broker.urls[cell.transport]
      return url === undefined ? undefined : await this.#through(cell, broker, url)
    } finally {
      if (site.slow !== true) await broker.stop()
    }
  }

  async #broker(site: Site, setup: Setup | 'own'): Promise<Broker> {
    if (site.slow !== true) return site.start(setup)
    const key = `${site.name} ${setup}`
    const kept = this.#kept.get(key) ?? (await site.start(setup))
    this.#kept.set(key, kept)
    return kept
  }

  async #through(cell: Cell, broker: Broker, url: string): Promise<Result> {
    const { program, transport, window, scale = 1 } = cell
    const seen = nothingSeen()
    const target = new URL(url)
    const link = await ShapedLink.start({
      port: Number(target.port),
      observe: tapping(seen),
    })
    target.port = String(link.port)
    const assignment: Assignment = {
      program: program.name,
      broker: cell.broker,
      url: target.href.replace(/\/$/, ''),
      directUrl: broker.urls.TCP ?? url,
      ...(window !== undefined && { window }),
      scale,
    }
    try {
      const patience = ((program.patience ?? 90) + 15) * 1000
      const figures = await inProcess(this.#file, assignment, patience, (order, argument) =>
        obey(order, argument, broker, link),
      )
      return { program: program.name, broker: cell.broker, transport, window, figures, seen }
    } finally {
      await link.stop()
    }
  }
}
