/**
 * The interface of schema libraries that follow Standard Schema. Types only, written from the
 * specification, so that no package is needed.
 */
import type { PayloadIssue } from '../errors.js'

/** A schema of zod, valibot, arktype or any other that follows the specification. */
export interface StandardSchema<In = unknown, Out = In> {
  /** The member required by the specification. */
  readonly '~standard': {
    /** Version of the specification. */
    readonly version: 1
    /** Name of the library. */
    readonly vendor: string
    /** Checks a value, now or later. */
    readonly validate: (value: unknown) => SchemaResult<Out> | Promise<SchemaResult<Out>>
    /** JSON Schema of the schema, if the library supports it (Standard JSON Schema). */
    readonly jsonSchema?:
      | {
          /** JSON Schema of the input. */
          readonly input: (options: { readonly target: 'draft-07' }) => object
        }
      | undefined
    /** Types for the compiler; absent at run time. */
    readonly types?:
      | {
          /** Input type. */
          readonly input: In
          /** Output type. */
          readonly output: Out
        }
      | undefined
  }
}

/** A valid value, or the issues. */
export type SchemaResult<Out> =
  | {
      /** The output value. */
      readonly value: Out
      /** Always undefined. */
      readonly issues?: undefined
    }
  | {
      /** At least one. */
      readonly issues: readonly PayloadIssue[]
    }

/** Input type of a schema. */
export type SchemaInput<Schema extends StandardSchema> = NonNullable<
  Schema['~standard']['types']
>['input']
/** Output type of a schema. */
export type SchemaOutput<Schema extends StandardSchema> = NonNullable<
  Schema['~standard']['types']
>['output']
