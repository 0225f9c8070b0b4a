"""The reservation service: books time, and starts and ends what is booked."""
