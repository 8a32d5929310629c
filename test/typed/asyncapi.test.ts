/** Contracts as AsyncAPI 3.0 documents. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { asyncapi } from '../../src/asyncapi/index.js'
import * as mq from '../../src/typed/index.js'

const plant = mq.contract({
  temperature: mq.channel('plant/{line}/{n:number}/temperature', mq.json(z.object({ value: z.number() })), { qos: 1, retain: true }),
  log: mq.channel('log/{rest...}', mq.text()),
  control: { setpoint: mq.operation('plant/{line}/setpoint', mq.number(), mq.json()) },
})

const options = {
  info: { title: 'Plant', version: '1.0.0' },
  servers: { here: 'mqtts://broker.example:8883', there: { host: 'x.example', protocol: 'ws' } },
  role: { send: ['temperature'], receive: ['control.setpoint', plant.log] },
  toJsonSchema: (schema: z.ZodType) => z.toJSONSchema(schema),
}

describe('an AsyncAPI document', () => {
  it('has channels, messages, servers and operations', () => {
    expect(asyncapi(plant, options)).toEqual({
      asyncapi: '3.0.0',
      info: options.info,
      defaultContentType: 'application/json',
      servers: { here: { host: 'broker.example:8883', protocol: 'mqtts' }, there: { host: 'x.example', protocol: 'ws' } },
      channels: {
        temperature: {
          address: 'plant/{line}/{n}/temperature',
          parameters: { line: {}, n: {} },
          messages: {
            message: {
              name: 'temperature',
              contentType: 'application/json',
              payload: expect.objectContaining({ type: 'object', properties: { value: { type: 'number' } }, required: ['value'] }),
            },
          },
        },
        log: { address: 'log/{rest}', parameters: { rest: {} }, messages: { message: { name: 'log', contentType: 'text/plain' } } },
        'control.setpoint': {
          address: 'plant/{line}/setpoint',
          parameters: { line: {} },
          messages: {
            message: expect.objectContaining({ name: 'control.setpoint', correlationId: { location: '$message.header#/correlationData' } }),
          },
        },
        'control.setpoint.reply': { address: null, messages: { message: { name: 'control.setpoint.reply', contentType: 'application/json' } } },
      },
      operations: {
        'send.temperature': {
          action: 'send',
          channel: { $ref: '#/channels/temperature' },
          messages: [{ $ref: '#/channels/temperature/messages/message' }],
          bindings: { mqtt: { qos: 1, retain: true, bindingVersion: '0.2.0' } },
        },
        'receive.control.setpoint': {
          action: 'receive',
          channel: { $ref: '#/channels/control.setpoint' },
          messages: [{ $ref: '#/channels/control.setpoint/messages/message' }],
          reply: {
            address: { location: '$message.header#/responseTopic' },
            channel: { $ref: '#/channels/control.setpoint.reply' },
            messages: [{ $ref: '#/channels/control.setpoint.reply/messages/message' }],
          },
        },
        'receive.log': {
          action: 'receive',
          channel: { $ref: '#/channels/log' },
          messages: [{ $ref: '#/channels/log/messages/message' }],
          bindings: { mqtt: { qos: 0, retain: false, bindingVersion: '0.2.0' } },
        },
      },
    })
  })

  it('refuses a role that names nothing, and a server that is none', () => {
    const invalid = expect.objectContaining({ code: 'ERR_INVALID_OPTION' })
    expect(() => asyncapi(plant, { ...options, role: { send: ['setpoint'] } })).toThrow(invalid)
    expect(() => asyncapi(plant, { ...options, servers: { x: 'no url' } })).toThrow(invalid)
  })
})
