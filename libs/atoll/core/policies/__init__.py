"""Choices that can be exchanged: the order of the queue, filters, scores, victims."""
