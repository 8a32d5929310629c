/** TODO */
export interface PlantedDefect {
  readonly name: string
  readonly file: string
  readonly find: string
  readonly replace: string
}
export const plantedDefects: readonly PlantedDefect[] = []
