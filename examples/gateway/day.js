/** What happens in the day, hour by hour. */

/** It delivers what has piled up. */
const isDelivering = (status) =>
  status !== undefined && status.inFlight > 0 && status.pending > status.inFlight

/** Hours of a day. */
export const hoursOfDay = 24
/** Hours between two events, at least. */
export const leastBetween = 0.3

/** Each with the hour from which on it happens, and for what it waits then. */
export const events = [
  { at: 0, action: 'start', text: 'The gateway starts. There is a broker.' },
  { at: 2, action: 'networkGoes', text: 'The broker is restarted.' },
  { at: 2.5, action: 'networkComes', text: 'It is back.' },
  { at: 5, action: 'networkGoes', text: 'The network fails, for most of the day.' },
  { at: 12, action: 'pullPlug', text: 'Somebody pulls the plug of the gateway.' },
  { at: 12.5, action: 'start', text: 'It starts again, still without network.' },
  { at: 18, action: 'networkComes', text: 'The network is back.' },
  {
    at: 18.2,
    when: isDelivering,
    action: 'pullPlug',
    text: 'The plug is pulled in the middle of delivering.',
  },
  { at: 19.6, action: 'start', text: 'The gateway starts again.' },
  { at: 21, action: 'networkGoes', text: 'The broker goes …' },
  { at: 21.4, action: 'networkComes', text: '… and comes …' },
  { at: 22, action: 'networkGoes', text: '… and goes …' },
  { at: 22.4, action: 'networkComes', text: '… and comes, and stays.' },
]

const two = (number) => String(Math.floor(number)).padStart(2, '0')

/** 5.5 hours are 05:30. */
export const timeOfDay = (hours) => `${two(hours)}:${two((hours % 1) * 60)}`
