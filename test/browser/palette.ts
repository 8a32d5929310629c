/**
 * Makes pictures of pages smaller: a PNG as browsers make it (eight bits a channel, not interlaced) becomes one with a palette of 256 colours.
 *
 * Colours that are close share a place in the palette, which is that of the most frequent among them.
 */
import { crc32, deflateSync, inflateSync } from 'node:zlib'

const signature = Buffer.from('89504e470d0a1a0a', 'hex')

interface Pixels {
  readonly width: number
  readonly height: number
  /** Red, green, blue of each pixel, row by row. */
  readonly rgb: Uint8Array
}

function* chunksOf(png: Buffer): Generator<readonly [type: string, data: Buffer]> {
  for (let at = signature.length; at < png.length; ) {
    const length = png.readUInt32BE(at)
    yield [png.toString('latin1', at + 4, at + 8), png.subarray(at + 8, at + 8 + length)]
    at += length + 12
  }
}

function chunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(data.length, 0)
  frame.writeUInt32BE(crc32(body), 4)
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)])
}

/** What a filter of the standard adds to a byte, from those to its left, above, and above left. */
function predicted(filter: number, left: number, above: number, corner: number): number {
  if (filter === 1) return left
  if (filter === 2) return above
  if (filter === 3) return (left + above) >> 1
  if (filter !== 4) return 0
  const guess = left + above - corner
  const [far, high] = [Math.abs(guess - left), Math.abs(guess - above)]
  const across = Math.abs(guess - corner)
  if (far <= high && far <= across) return left
  return high <= across ? above : corner
}

/** Takes a picture apart. */
export function pixelsOf(png: Buffer): Pixels {
  const chunks = [...chunksOf(png)]
  const [, header = Buffer.alloc(13)] = chunks[0] ?? []
  const [width, height, depth, kind] = [
    header.readUInt32BE(0),
    header.readUInt32BE(4),
    header[8],
    header[9],
  ]
  if (depth !== 8 || (kind !== 2 && kind !== 6) || header[12] !== 0)
    throw new Error('a picture of another kind')
  const size = kind === 6 ? 4 : 3
  const data = inflateSync(
    Buffer.concat(chunks.filter(([type]) => type === 'IDAT').map(([, part]) => part)),
  )
  const row = width * size
  let before = new Uint8Array(row)
  const rgb = new Uint8Array(width * height * 3)
  for (let y = 0; y < height; y++) {
    const start = y * (row + 1)
    const line = Uint8Array.from(data.subarray(start + 1, start + 1 + row))
    const filter = data[start] ?? 0
    for (let at = 0; at < row; at++) {
      line[at] =
        (line[at] ?? 0) +
        predicted(filter, line[at - size] ?? 0, before[at] ?? 0, before[at - size] ?? 0)
    }
    for (let x = 0; x < width; x++)
      rgb.set(line.subarray(x * size, x * size + 3), (y * width + x) * 3)
    before = line
  }
  return { width, height, rgb }
}

/** The most frequent colours, of those that are close to each other only one. */
function paletteOf(counts: ReadonlyMap<number, number>): number[] {
  const groups = new Map<number, { colour: number; count: number; sum: number }>()
  for (const [colour, count] of counts) {
    const near = colour & (counts.size > 256 ? 0xf8f8f8 : 0xffffff)
    const group = groups.get(near)
    if (group === undefined) groups.set(near, { colour, count, sum: count })
    else {
      group.sum += count
      if (count > group.count) Object.assign(group, { colour, count })
    }
  }
  const sorted = [...groups.values()].sort((one, other) => other.sum - one.sum)
  return sorted.slice(0, 256).map(({ colour }) => colour)
}

function distance(one: number, other: number): number {
  const part = (shift: number): number => ((one >> shift) & 0xff) - ((other >> shift) & 0xff)
  return part(16) ** 2 + part(8) ** 2 + part(0) ** 2
}

/** The same picture with 256 colours. */
export function withPalette(png: Buffer): Buffer {
  const { width, height, rgb } = pixelsOf(png)
  const colourAt = (pixel: number): number =>
    ((rgb[pixel * 3] ?? 0) << 16) | ((rgb[pixel * 3 + 1] ?? 0) << 8) | (rgb[pixel * 3 + 2] ?? 0)
  const counts = new Map<number, number>()
  const pixels = Uint32Array.from({ length: width * height }, (_, pixel) => colourAt(pixel))
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1)
  const palette = paletteOf(counts)
  const places = new Map<number, number>()
  const placeOf = (colour: number): number => {
    const known = places.get(colour)
    if (known !== undefined) return known
    const place = palette.reduce(
      (best, each, index) =>
        distance(each, colour) < distance(palette[best] ?? 0, colour) ? index : best,
      0,
    )
    places.set(colour, place)
    return place
  }
  const data = new Uint8Array((width + 1) * height)
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      data[y * (width + 1) + 1 + x] = placeOf(pixels[y * width + x] ?? 0)
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 3, 0, 0, 0], 8)
  const colours = Uint8Array.from(
    palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 0xff, colour & 0xff]),
  )
  const parts = [
    chunk('IHDR', header),
    chunk('PLTE', colours),
    chunk('IDAT', deflateSync(data, { level: 9 })),
    chunk('IEND', new Uint8Array(0)),
  ]
  return Buffer.concat([signature, ...parts])
}
