/** Defects to plant in `src/typed`: what the fault world has to see. Each replaces a piece of text that occurs once in the files there. */

/** One defect. */
export interface PlantedDefect {
  readonly name: string
  readonly find: string
  readonly replace: string
}

/** All of them. */
export const plantedDefects: readonly PlantedDefect[] = [
  { name: 'an answer that comes twice is given twice', find: 'if (seq < this.#expected) return\n', replace: '' },
  { name: 'a gap between answers is passed over', find: 'if (seq > this.#expected || (!isLast', replace: 'if ((!isLast' },
  {
    name: 'answers of two generators are taken for those of one',
    find: 'responseTopic !== undefined && responseTopic !== this.#control',
    replace: 'false',
  },
  { name: 'a request that comes again begins another generator', find: ' || this.#open.has(key)', replace: '' },
  {
    name: 'answers go at QoS 0',
    find: 'publish(topic, payload, { qos: 1, properties })',
    replace: 'publish(topic, payload, { qos: 0, properties })',
  },
  {
    name: 'requests go at QoS 0',
    find: '{ qos: 1, signal, ttl: timeout, properties: all }',
    replace: '{ qos: 0, signal, ttl: timeout, properties: all }',
  },
  { name: 'credit goes at QoS 0', find: "publish(control, '', { qos: 1,", replace: "publish(control, '', { qos: 0," },
  { name: 'both ends listen at QoS 0', find: 'ownTopicOptions: ListenOptions = { qos: 1,', replace: 'ownTopicOptions: ListenOptions = { qos: 0,' },
  { name: 'who waits for an answer waits for ever', find: 'setTimeout(resolve, left)', replace: 'setTimeout(() => undefined, left)' },
  { name: 'nobody tells the server who has left', find: "this.#host.say(this.#control, 'cancel', '')", replace: 'void 0' },
  {
    name: 'a server waits for credit for ever',
    find: "giveUp(giving, 'no credit came in time', 'ERR_TIMEOUT')",
    replace: 'undefined',
  },
  {
    name: 'a generator whose caller has left is forgotten',
    find: 'this.#controlled.delete(control)\n      endOf(values)',
    replace: 'this.#controlled.delete(control)',
  },
  { name: 'credit that comes twice counts twice', find: 'giving.credit = credit\n', replace: 'giving.credit += credit\n' },
  { name: 'the end of the client ends no stream', find: "stream.fail(error ?? new MqttError('ERR_CLOSED'))", replace: 'void error' },
  { name: 'nothing is said of a generator that failed', find: "        'error',\n", replace: "        'end',\n" },
  {
    name: 'the first answer of a generator is that of another call',
    find: 'const { value } = await values.next()',
    replace: 'await values.next()\n  const { value } = await values.next()',
  },
]
