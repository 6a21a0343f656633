"""Replies as models write them, each with what a person reads in it, and a measure of the reader against them."""
