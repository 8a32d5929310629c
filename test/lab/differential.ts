/** Our codec beside three foreign ones: the same packets with the same fields, or a judgement that says who is wrong (`test/lab/differential`). */
import { compare } from './differential/main.js'
import type { Lab, Result } from './lab.js'

export const about =
  'our codec beside mqtt-packet, paho.golang and mochi-mqtt (Go); a word takes one of them; --replay NUMBER repeats the batch of a packet'
export const minutes = 2

export async function run(lab: Lab): Promise<Result> {
  const [only] = lab.words
  const number = lab.replay === undefined ? undefined : Number(lab.replay)
  const { report, findings, missing } = await compare(
    { seed: lab.seed, packets: 10_000_000, limit: lab.minutes * 60, number },
    only,
  )
  for (const [codec, { asked, accepted, written }] of report.asked)
    lab.say(`${codec}: asked ${asked}, accepted ${accepted}, wrote ${written}`)
  const judged = [...report.applied.values()].reduce((sum, times) => sum + times, 0)
  const command = `npm run lab -- differential ${only ?? ''} --seed ${lab.seed}`
  return {
    did: `${report.packets} packets, ${report.asked.size} foreign codecs, ${judged} differences judged`,
    findings: findings.map(({ what, number }) => ({
      what,
      command: number === undefined ? command : `${command} --replay ${number}`,
    })),
    ...(missing !== undefined && { skipped: `paho.golang and mochi-mqtt: ${missing}` }),
  }
}
