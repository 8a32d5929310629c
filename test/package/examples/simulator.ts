/** What the simulator can be set to, and what it counts. */
export interface Settings {
  devices: number
  rate: number
  qos: 0 | 1 | 2
  payload: string
  ramp: number
  topic: string
  template: string
}

type Counted =
  | 'sent'
  | 'acknowledged'
  | 'arrived'
  | 'open'
  | 'awaited'
  | 'lost'
  | 'twice'
  | 'unsure'
type Other = 'devices' | 'connected' | 'missing0' | 'repeated1' | 'heldBack' | 'attempts'

/** Totals of a fleet. */
export type Figures = Readonly<Record<Counted | Other, number>>
