/** Every run of the gate draws the same random inputs. The lab draws others: it sets `MQWIRE_SEED`. */
import fc from 'fast-check'

fc.configureGlobal({ seed: Number(process.env['MQWIRE_SEED'] ?? 20_261_126) })
