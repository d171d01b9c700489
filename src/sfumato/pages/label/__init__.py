"""The privacy label: what a survey promises, on one page."""
