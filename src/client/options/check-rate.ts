/**
 * How fast publishes may leave, as callers give it.
 */

import { integer, longestTimer, object, optional } from '../../common/schema.js'
import type { RateOptions } from './index.js'

/** Checks it. @throws MqttError ERR_INVALID_OPTION */
export const rate = /* @__PURE__ */ object<RateOptions>({
  messages: /* @__PURE__ */ optional(/* @__PURE__ */ integer(1, 1e9)),
  bytes: /* @__PURE__ */ optional(/* @__PURE__ */ integer(1, 1e12)),
  per: /* @__PURE__ */ optional(/* @__PURE__ */ integer(1, longestTimer, ' milliseconds')),
})
