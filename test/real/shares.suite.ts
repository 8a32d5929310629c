/** What brokers in Java do with the messages of a member that leaves its group. Not part of `npm test`: `npm run lab -- brokers write`. */
import { checkShares } from './shares-check.js'

for (const name of ['HiveMQ CE', 'Artemis'] as const) await checkShares(name)
