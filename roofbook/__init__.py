"""Data to report: plugin > pages > charts > analysis > validity > record, facts, readers, words > theory > units."""
