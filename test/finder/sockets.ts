/** TODO */
import { VirtualWorld, type World, type WorldName } from './worlds.js'
export async function startWorld(name: WorldName): Promise<World> {
  if (name !== 'virtual') throw new Error('later')
  return new VirtualWorld()
}
