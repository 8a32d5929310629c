/**
 * What every schema library that follows Standard Schema offers. Types only, written after the specification, so that nothing needs to be installed.
 */
import type { PayloadIssue } from '../errors.js'

/** A schema of zod, valibot, arktype or any other that follows the specification. */
export interface StandardSchema<In = unknown, Out = In> {
  /** What the specification asks for. */
  readonly '~standard': {
    /** Of the specification. */
    readonly version: 1
    /** Name of the library. */
    readonly vendor: string
    /** Checks a value, now or later. */
    readonly validate: (value: unknown) => SchemaResult<Out> | Promise<SchemaResult<Out>>
    /** Gives its JSON Schema, where the library can (Standard JSON Schema). */
    readonly jsonSchema?:
      | {
          /** Gives that of what it takes. */
          readonly input: (options: { readonly target: 'draft-07' }) => object
        }
      | undefined
    /** For the compiler alone. */
    readonly types?:
      | {
          /** What it takes. */
          readonly input: In
          /** What it gives. */
          readonly output: Out
        }
      | undefined
  }
}

/** A value that is right, or what is wrong with it. */
export type SchemaResult<Out> =
  | {
      /** What the schema made of it. */
      readonly value: Out
      /** Never there. */
      readonly issues?: undefined
    }
  | {
      /** At least one. */
      readonly issues: readonly PayloadIssue[]
    }

/** What a schema takes. */
export type SchemaInput<Schema extends StandardSchema> = NonNullable<
  Schema['~standard']['types']
>['input']
/** What a schema gives. */
export type SchemaOutput<Schema extends StandardSchema> = NonNullable<
  Schema['~standard']['types']
>['output']
