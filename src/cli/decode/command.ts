/**
 * `mqwire decode`: shows the packets in hexadecimal text, field by field, and whether they are valid.
 */
import { addAbortSignal } from 'node:stream'
import { Command } from 'commander'
import type { Sender } from 'mqwire/wire'
import { option } from '../common/connection.js'
import { Ending, misuse } from '../common/ending.js'
import { visible } from '../common/format.js'
import { type Colours, coloursOf, say, write } from '../common/terminal.js'
import type { Field } from './fields.js'
import { packetsOf, type ShownPacket, senderOf } from './packets.js'

interface DecodeValues {
  readonly from?: Sender
  readonly protocol?: string
  readonly json?: boolean
}

/** Most characters of the input. */
const mostCharacters = 16 * 2 ** 20
/** Most bytes of a field in hexadecimal, the columns that they take, and characters of a value. */
const [mostBytes, columns, mostText] = [8, 38, 200]
/** Characters that are written at once. */
const pieceSize = 65_536

const examples = `
The input is what one side sent, in hexadecimal: spaces, colons, commas, line ends and 0x are skipped. Packets follow each
other, and may be split over lines. Without --from, the first packet shows the side, by default the client; a packet that
only the other side may send is still taken as from there. A CONNECT sets the protocol version.

A broken packet is shown up to the fault, with the normative statement of the standard that it breaks, where one has a number.
What only a session can show, such as an answer to nothing, is not looked at.

Exit codes:
  0  every packet is valid
  1  the input is no hexadecimal text, or empty
  3  a packet is broken, or incomplete at the end

Examples:
  mqwire decode 30 05 00 01 61 00 31
  mqwire decode --protocol 4 --from server 20:02:01:05
  xxd -p packet.bin | mqwire decode --json | jq .error.statement
  tshark -r file.pcap -Y 'mqtt && tcp.dstport == 1883' -T fields -e tcp.payload | mqwire decode
`

/** Defines the command. */
export function decodeCommand(signal: AbortSignal): Command {
  return (
    new Command('decode')
      .description('show the bytes of packets, field by field, and what is wrong with them')
      .argument('[hex...]', 'the bytes in hexadecimal; - or nothing is standard input')
      .addOption(option('--from <side>', 'who sent them, see below').choices(['client', 'server']))
      // The environment may have `auto` for other commands.
      .addOption(
        option('--protocol <5|4|auto>', '4: 3.1.1; default: 5').choices(['5', '4', 'auto']),
      )
      .addOption(option('--json', 'a line of JSON for each packet'))
      .addHelpText('after', examples)
      .action(async (words: readonly string[], values: DecodeValues) => {
        const given = words.join(' ')
        const isInput = words.length === 0 || given === '-'
        await show(bytesOf(isInput ? await standardInput(signal) : given), values, signal)
      })
  )
}

async function standardInput(signal: AbortSignal): Promise<string> {
  let text = ''
  for await (const piece of addAbortSignal(signal, process.stdin.setEncoding('latin1'))) {
    text += piece
    if (text.length > mostCharacters) throw misuse('the input is longer than 16 MiB')
  }
  return text
}

/** The bytes of hexadecimal text. @throws Ending when it has something else */
function bytesOf(text: string): Uint8Array {
  // A byte order mark, read byte by byte, is no part of the text.
  const digits = text
    .replace(/^\u00ef\u00bb\u00bf/, '')
    .replace(/(?<![0-9a-z])0x/gi, '')
    .replace(/[\s:,]+/g, '')
  const wrong = /[^0-9a-f]/i.exec(digits)
  if (wrong !== null) throw misuse(`'${visible(wrong[0])}' is no hexadecimal digit`)
  if (digits === '') throw misuse('the input is empty')
  if (digits.length % 2 > 0) throw misuse('the input has an odd number of hexadecimal digits')
  return new Uint8Array(Buffer.from(digits, 'hex'))
}

async function show(bytes: Uint8Array, values: DecodeValues, signal: AbortSignal): Promise<void> {
  const { from, protocol, json } = values
  if (from === undefined) say(`taken as sent by the ${senderOf(bytes)}; --from says otherwise`)
  const colours = coloursOf(process.stdout)
  let [piece, count, bad] = ['', 0, 0]
  for (const packet of packetsOf(bytes, from, protocol === '4' ? 4 : 5)) {
    count++
    if (!packet.valid) bad++
    piece += json ? jsonOf(packet) : textOf(packet, bytes, colours)
    if (piece.length < pieceSize) continue
    await write(piece, process.stdout, signal)
    piece = ''
  }
  await write(piece, process.stdout, signal)
  if (bad > 0) throw new Ending('refused', `${bad} of ${count} packets broken`)
}

const jsonOf = (packet: ShownPacket): string =>
  `${JSON.stringify(packet, (key, value) => (key === 'within' ? undefined : value))}\n`

function textOf(packet: ShownPacket, all: Uint8Array, colours: Colours): string {
  const { type, offset, length, from, protocolVersion, fields } = packet
  const version = protocolVersion === 5 ? '5.0' : '3.1.1'
  const title = `${type} from ${from}, MQTT ${version}, ${counted(length)} at byte ${offset}`
  const lines = [colours.bold(title)]
  let before = ''
  for (const field of fields) {
    const parts = field.within.split('/').filter((part) => part !== '')
    parts.forEach((part, depth) => {
      const path = `${parts.slice(0, depth + 1).join('/')}/`
      if (!before.startsWith(path)) lines.push(`${'  '.repeat(depth + 1)}${part}`)
    })
    before = `${field.within}/`
    lines.push(lineOf(field, all.subarray(offset + field.offset), parts.length + 1, colours))
  }
  return `${[...lines, `  ${verdictOf(packet, colours)}`].join('\n')}\n`
}

const counted = (length: number): string => `${length} ${length === 1 ? 'byte' : 'bytes'}`

function lineOf(field: Field, bytes: Uint8Array, depth: number, colours: Colours): string {
  const { offset, length, name, value, statement } = field
  const start = Buffer.from(bytes.subarray(0, Math.min(length, mostBytes))).toString('hex')
  const hex = `${start.replace(/..(?=.)/g, '$& ')}${length > mostBytes ? ` … ${length} bytes` : ''}`
  const at = `${'  '.repeat(depth)}${String(offset).padStart(5)}`
  const full = visible(String(value))
  const text = `${name}: ${full.length > mostText ? `${full.slice(0, mostText)}…` : full}`
  const shown = statement === undefined ? text : colours.red(`${text} [${statement}]`)
  return `${at}  ${colours.dim(hex.padEnd(columns - 2 * depth))}  ${shown}`
}

function verdictOf({ error, length }: ShownPacket, colours: Colours): string {
  if (error === undefined) return colours.green('ok')
  const { kind, message, offset, statement } = error
  if (kind === 'incomplete')
    return colours.red(`incomplete: the input ends after ${counted(length)} of the packet`)
  return colours.red(`broken: ${message} at byte ${offset}${statement ? ` [${statement}]` : ''}`)
}
